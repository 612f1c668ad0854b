import type { ModelAnswer, ModelPart, ModelUsage } from "../model/chat-completions.ts"
import { GatewayError } from "./errors.ts"

/** A part of an answer. `input` is JSON text unless the model wrote a malformed call. */
export type AnswerBlock =
  | { type: "text" | "reasoning"; text: string }
  | { type: "call"; id: string; name: string; input: string }

/** The reason why an answer ended. `other` is a reason that the Chat Completions API does not define. */
export type StopReason = "stop" | "length" | "tool-calls" | "content-filter" | "other"

/** A complete answer. */
export interface Answer {
  blocks: AnswerBlock[]
  reason: StopReason
  /** The reason as the upstream sent it. */
  rawReason?: string
  usage: ModelUsage
}

/**
 * An event of an answer. `index` is the position of the block. Text and reasoning end before the next block begins, but
 * a call may end later. The last event is `finish`, which contains the whole answer.
 */
export type AnswerEvent =
  | { type: "start"; index: number; block: AnswerBlock }
  | { type: "delta"; index: number; block: AnswerBlock; delta: string }
  | { type: "end"; index: number; block: AnswerBlock }
  | { type: "finish"; answer: Answer }

/** Assembles an answer from the parts that a model returns. */
interface AnswerReader {
  /**
   * Returns the events for a part. If the part reports an error, throws that error. Throws `GatewayError` if the part
   * ends an answer that is malformed or incomplete.
   */
  take(part: ModelPart): AnswerEvent[]
  /** Returns the whole answer. Throws `GatewayError` if no finish part has arrived. */
  end(): Answer
}

/** Creates a reader for one answer. If `parallel` is false, the reader drops all calls after the first. */
export function createAnswerReader({ parallel }: { parallel: boolean }): AnswerReader {
  const blocks: AnswerBlock[] = []
  /** Calls by id. A dropped call has no index. */
  const calls = new Map<string, { index: number | undefined; sent: string; ended: boolean }>()
  let open: { index: number; block: Extract<AnswerBlock, { text: string }> } | undefined
  /**
   * The end events of calls whose streamed arguments differ from the final input. The reader returns these events only
   * when the finish reason is known.
   */
  const malformed: Extract<AnswerEvent, { type: "end" }>[] = []
  let answer: Answer | undefined

  function endText(): AnswerEvent[] {
    if (open === undefined) return []
    const { index, block } = open
    open = undefined
    return [{ type: "end", index, block }]
  }

  function addText(type: "text" | "reasoning", delta: string): AnswerEvent[] {
    if (delta === "") return []
    const events = open?.block.type === type ? [] : endText()
    if (open === undefined) {
      open = { index: blocks.length, block: { type, text: "" } }
      blocks.push(open.block)
      events.push({ type: "start", index: open.index, block: { ...open.block } })
    }
    const { index, block } = open
    block.text += delta
    return [...events, { type: "delta", index, block, delta }]
  }

  function startCall(id: string, name: string): AnswerEvent[] {
    const index = calls.size > 0 && !parallel ? undefined : blocks.length
    calls.set(id, { index, sent: "", ended: false })
    if (index === undefined) return []
    const block: AnswerBlock = { type: "call", id, name, input: "" }
    blocks.push(block)
    return [...endText(), { type: "start", index, block: { ...block } }]
  }

  function addArguments(id: string, delta: string): AnswerEvent[] {
    const call = calls.get(id)
    if (call === undefined || delta === "") return []
    call.sent += delta
    const block = call.index === undefined ? undefined : blocks[call.index]
    if (call.index === undefined || block === undefined) return []
    return [{ type: "delta", index: call.index, block, delta }]
  }

  /**
   * Ends a call and returns its remaining events. If the final input does not begin with the streamed arguments, the
   * call is malformed, and the client must not execute it.
   */
  function endCall({
    toolCallId: id,
    toolName,
    input,
  }: Extract<ModelPart, { type: "tool-call" }>): AnswerEvent[] {
    const started = calls.has(id) ? [] : startCall(id, toolName)
    const call = calls.get(id)
    if (call === undefined || call.ended) return started
    call.ended = true
    const isWhole = input.startsWith(call.sent)
    const rest = isWhole ? addArguments(id, input.slice(call.sent.length)) : []
    const block = call.index === undefined ? undefined : blocks[call.index]
    if (call.index === undefined || block?.type !== "call") return started
    block.input = call.sent
    const end = { type: "end" as const, index: call.index, block }
    if (!isWhole) malformed.push(end)
    return [...started, ...rest, ...(isWhole ? [end] : [])]
  }

  /**
   * Returns the final events. Throws `GatewayError` if a call is incomplete, or if a call is malformed although the
   * output limit did not cut the answer off.
   */
  function finish({ finishReason, usage }: Extract<ModelPart, { type: "finish" }>): AnswerEvent[] {
    const reason = stopReason(finishReason)
    const [{ block: broken } = {}] = malformed
    if (reason !== "length" && broken?.type === "call") throw malformedCall(broken.name)
    if ([...calls.values()].some(({ ended }) => !ended)) throw brokenOff()
    // Some servers report `stop` instead of `tool-calls` after calls.
    const called = reason === "stop" && calls.size > 0
    answer = { blocks, reason: called ? "tool-calls" : reason, rawReason: finishReason.raw, usage }
    return [...malformed, ...endText(), { type: "finish", answer }]
  }

  return {
    take(part) {
      switch (part.type) {
        case "text-delta":
          return addText("text", part.delta)
        case "reasoning-delta":
          return addText("reasoning", part.delta)
        case "tool-input-start":
          return startCall(part.id, part.toolName)
        case "tool-input-delta":
          return addArguments(part.id, part.delta)
        case "tool-call":
          return endCall(part)
        case "error":
          throw part.error
        case "finish":
          return finish(part)
        default:
          return []
      }
    },
    end() {
      if (answer === undefined) throw brokenOff()
      return answer
    },
  }
}

/** Converts an answer that was not streamed. Throws `GatewayError` if the upstream's answer is incomplete. */
export function readAnswer(
  { content, finishReason, usage }: ModelAnswer,
  options: { parallel: boolean },
): Answer {
  const reader = createAnswerReader(options)
  for (const part of content) {
    if (part.type === "text") reader.take({ type: "text-delta", id: "", delta: part.text })
    else if (part.type === "reasoning") reader.take({ type: "reasoning-delta", id: "", delta: part.text })
    else if (part.type === "tool-call") reader.take(part)
  }
  reader.take({ type: "finish", finishReason, usage })
  return reader.end()
}

/** Joins all text of one type in an answer. */
export function textOf({ blocks }: Answer, type: "text" | "reasoning"): string {
  return blocks.map((block) => (block.type === type ? block.text : "")).join("")
}

/**
 * Returns the stop reason. Throws `GatewayError` if the answer was interrupted or has no finish reason, because such an
 * answer is incomplete.
 */
function stopReason({ unified, raw }: ModelAnswer["finishReason"]): StopReason {
  switch (unified) {
    case "stop":
    case "length":
    case "tool-calls":
    case "content-filter":
      return unified
    case "error":
    case "interrupted":
      throw brokenOff()
    default:
      if (raw === undefined) throw brokenOff()
      return "other"
  }
}

function brokenOff(): GatewayError {
  return new GatewayError("The upstream's answer ended early. Send the request again.", {
    status: 502,
    label: "upstream_broke_off",
  })
}

/** Returns the error for a malformed call to `tool`. */
export function malformedCall(tool: string): GatewayError {
  return new GatewayError(`The model wrote a malformed call to ${tool}. Send the request again.`, {
    status: 502,
    label: "malformed_call",
  })
}
