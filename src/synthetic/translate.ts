import type {
  LanguageModelV4FinishReason,
  LanguageModelV4StreamPart,
  LanguageModelV4ToolChoice,
  LanguageModelV4Usage,
} from "@ai-sdk/provider"
import { newId } from "../util/id.ts"
import { type ArgumentWriter, createArgumentWriter } from "./argument-writer.ts"
import type { DialectName, MalformedCall, ReadCall, SyntheticTool } from "./dialect.ts"
import { type CallParser, createCallParser, type ParserEvent } from "./parser.ts"
import type { AnswerOutcome } from "./prompt.ts"

type Part = LanguageModelV4StreamPart

/** Converts the parts of one or more attempts into the parts of one answer with calls. */
interface Translator {
  /** Converts a part. Holds back `finish`, the last part of an attempt. */
  take(part: Part): Part[]
  /** Returns the outcome of the latest attempt, or undefined if the attempt ended without `finish`. */
  outcome(): AnswerOutcome | undefined
  /** Starts another attempt. */
  again(): void
  /** Returns the remaining parts: malformed calls that no attempt repaired, and then `finish`. */
  end(): Part[]
}

interface OpenCall extends MalformedCall {
  announced?: AnnouncedCall | undefined
}

/** A call whose start has been sent. */
interface AnnouncedCall {
  id: string
  arguments: ArgumentWriter
}

/**
 * Creates a translator for one request. After the first attempt, drops the text next to a call, because this text
 * repeats earlier text.
 */
export function createTranslator(options: {
  tools: readonly SyntheticTool[]
  dialect: DialectName
  /** Texts that the model has read. A call that repeats a part of one of them is a quotation. */
  quotable?: readonly string[]
  /** The request's tool choice. It can limit the calls to one tool. */
  choice?: LanguageModelV4ToolChoice | undefined
}): Translator {
  let attempt = 0
  let parser: CallParser = createCallParser(options)
  let written = ""
  let heldText = ""
  /** Text of the first attempt. */
  let firstText = ""
  let calls = 0
  let finish: Extract<Part, { type: "finish" }> | undefined
  let usage: LanguageModelV4Usage | undefined
  let textID: string | undefined
  let textMetadata: Extract<Part, { type: "text-start" }>["providerMetadata"]
  let current: (AnnouncedCall & { isNew: boolean }) | undefined
  let malformed: OpenCall[] = []
  /** Calls that earlier attempts announced and that no attempt has repaired yet. */
  const unrepaired: OpenCall[] = []

  function takeEvent(event: ParserEvent): Part[] {
    switch (event.type) {
      case "text":
        if (attempt === 0) {
          firstText += event.text
          return emitText(event.text)
        }
        heldText += event.text
        return []
      case "call-start": {
        const before = unrepaired.findIndex(({ announced, tool }) => announced && tool === event.tool)
        const announced = unrepaired.splice(before, before < 0 ? 0 : 1)[0]?.announced
        const call = announced ?? { id: newId("call"), arguments: createArgumentWriter() }
        current = { ...call, isNew: announced === undefined }
        return [...endText(), ...(current.isNew ? [inputStart(current.id, event.tool)] : [])]
      }
      case "call-delta":
        // Does not stream the repeated call, because its deltas would be appended to those of the malformed call.
        return current?.isNew ? inputDelta(current.id, current.arguments.push(event.delta)) : []
      case "call": {
        const { id, arguments: sent } = current ?? { id: newId("call"), arguments: createArgumentWriter() }
        current = undefined
        calls += 1
        // If the final input does not match the arguments that were already sent, sends the complete input, so that the
        // receiver notices the difference.
        const { rest, whole } = sent.end(event.input) ?? { rest: "", whole: event.input }
        return [...inputDelta(id, rest), ...callParts(id, event.tool, whole, event.repaired)]
      }
      case "malformed": {
        const { type: _, ...call } = event
        if (call.unknown && options.choice?.type !== "tool") return unknownCall(call.unknown)
        malformed.push({ ...call, announced: current })
        current = undefined
        return []
      }
    }
  }

  /**
   * Returns the parts of a call to an unknown tool. The engine handles the call as it does with native tool calling.
   */
  function unknownCall({ tool, input }: ReadCall): Part[] {
    const id = newId("call")
    calls += 1
    const delta: Part = { type: "tool-input-delta", id, delta: input }
    return [...endText(), inputStart(id, tool), delta, ...callParts(id, tool, input)]
  }

  function emitText(text: string): Part[] {
    if (text === "") return []
    const parts: Part[] = []
    if (textID === undefined) {
      textID = newId("prt")
      const metadata = textMetadata && { providerMetadata: textMetadata }
      parts.push({ type: "text-start", id: textID, ...metadata })
    }
    parts.push({ type: "text-delta", id: textID, delta: text })
    return parts
  }

  /** Returns the text of the latest attempt, unless it equals the text of the first attempt. */
  function emitHeldText(): Part[] {
    if (["", firstText.trim()].includes(heldText.trim())) return []
    return emitText(firstText.trim() === "" ? heldText : `\n\n${heldText}`)
  }

  function endText(): Part[] {
    if (textID === undefined) return []
    const id = textID
    textID = undefined
    return [{ type: "text-end", id }]
  }

  return {
    take(part) {
      switch (part.type) {
        case "text-start":
          textMetadata = part.providerMetadata
          return []
        case "text-delta":
          written += part.delta
          return joined(parser.push(part.delta).flatMap(takeEvent))
        case "text-end":
          return []
        case "finish":
          finish = part
          usage = usage === undefined ? part.usage : sum(usage, part.usage)
          return joined(parser.end({ cut: part.finishReason.unified === "length" }).flatMap(takeEvent))
        case "stream-start":
        case "response-metadata":
          return attempt === 0 ? [part] : []
        case "tool-call":
          if (!part.providerExecuted) calls += 1
          return [...endText(), part]
        case "reasoning-start":
        case "tool-input-start":
          return [...endText(), part]
        default:
          return [part]
      }
    },
    outcome() {
      if (finish === undefined) return undefined
      return { text: written, calls, malformed, cut: finish.finishReason.unified === "length" }
    },
    again() {
      attempt += 1
      parser = createCallParser(options)
      unrepaired.push(...malformed.filter(({ announced }) => announced))
      malformed = []
      written = ""
      heldText = ""
      finish = undefined
    },
    end() {
      if (finish === undefined || usage === undefined) return []
      const parts: Part[] = calls === 0 ? emitHeldText() : []
      for (const { announced, tool, text } of [...unrepaired, ...malformed]) {
        if (tool === undefined) {
          parts.push(...emitText(text))
          continue
        }
        calls += 1
        const callID = announced?.id ?? newId("call")
        parts.push(...endText(), ...(announced === undefined ? [inputStart(callID, tool)] : []))
        parts.push(...callParts(callID, tool, text))
      }
      parts.push(...endText())
      const finishReason = calls > 0 ? asCalls(finish.finishReason) : finish.finishReason
      const providerMetadata = {
        ...finish.providerMetadata,
        ...(attempt > 0 && { tackle: { retries: attempt } }),
      }
      parts.push({ ...finish, usage, finishReason, providerMetadata })
      return parts
    },
  }
}

function inputStart(id: string, toolName: string): Part {
  return { type: "tool-input-start", id, toolName }
}

/** Joins consecutive pieces of the arguments of one call. */
function joined(parts: Part[]): Part[] {
  const result: Part[] = []
  for (const part of parts) {
    const last = result.at(-1)
    if (part.type === "tool-input-delta" && last?.type === "tool-input-delta" && last.id === part.id)
      result[result.length - 1] = { ...last, delta: last.delta + part.delta }
    else result.push(part)
  }
  return result
}

function inputDelta(id: string, delta: string): Part[] {
  return delta === "" ? [] : [{ type: "tool-input-delta", id, delta }]
}

function callParts(id: string, toolName: string, input: string, repaired?: string): Part[] {
  const metadata = repaired === undefined ? {} : { providerMetadata: { tackle: { repaired } } }
  return [
    { type: "tool-input-end", id },
    { type: "tool-call", toolCallId: id, toolName, input, ...metadata },
  ]
}

/**
 * Changes the finish reasons `stop` and `other` to `tool-calls`. Keeps other reasons. For example, `length` means that
 * the last call may be incomplete.
 */
function asCalls(reason: LanguageModelV4FinishReason): LanguageModelV4FinishReason {
  return reason.unified === "stop" || reason.unified === "other"
    ? { ...reason, unified: "tool-calls" }
    : reason
}

function sum(a: LanguageModelV4Usage, b: LanguageModelV4Usage): LanguageModelV4Usage {
  return {
    ...b,
    inputTokens: add(a.inputTokens, b.inputTokens),
    outputTokens: add(a.outputTokens, b.outputTokens),
  }
}

/** Adds the counts by key. A count that both objects lack stays undefined. */
function add<T extends Record<string, number | undefined>>(a: T, b: T): T {
  const keys = new Set([...Object.keys(a), ...Object.keys(b)])
  const sums = [...keys].map((key) => {
    const [one, other] = [a[key], b[key]]
    return [key, one === undefined && other === undefined ? undefined : (one ?? 0) + (other ?? 0)]
  })
  return Object.fromEntries(sums)
}
