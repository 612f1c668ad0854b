import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4Content,
  LanguageModelV4FinishReason,
  LanguageModelV4Message,
  LanguageModelV4Prompt,
  LanguageModelV4StreamPart,
  LanguageModelV4Usage,
} from "@ai-sdk/provider"
import type { Model, ModelInfo } from "./model.ts"
import { parseRequests } from "./offline-requests.ts"
import { nextMove, type OfflineMove } from "./offline-turn.ts"

/** The built-in model, for a machine without any other. */
export const offlineInfo: ModelInfo = {
  ref: { providerID: "tackle", modelID: "offline" },
  name: "Tackle offline (rules, no intelligence)",
  toolCall: true,
  limit: {},
  cost: { input: 0, output: 0 },
  attachment: false,
}

/** `tackle/offline`: turns plain requests into real tool calls by rules, without a network. */
export function createOfflineModel(): Model {
  return { info: offlineInfo, language: async () => offlineLanguage }
}

const introduction =
  'I am tackle/offline, a stand-in made of rules, without intelligence. For a real model pass --model provider/model, with its key in the environment, or set "model" in tackle.json.'

const abilities = `I can: list the files in DIR; find files named *.ts; read FILE; find TEXT in DIR; replace A with B in FILE; create FILE with TEXT; run COMMAND. Put text with commas or spaces in quotes; join several with "then".`

const usage: LanguageModelV4Usage = {
  inputTokens: { total: undefined, noCache: undefined, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: undefined, text: undefined, reasoning: undefined },
}

const offlineLanguage: LanguageModelV4 = {
  specificationVersion: "v4",
  provider: offlineInfo.ref.providerID,
  modelId: offlineInfo.ref.modelID,
  supportedUrls: {},
  async doGenerate(options) {
    const move = respond(options)
    const content: LanguageModelV4Content[] =
      "answer" in move
        ? [{ type: "text", text: move.answer }]
        : move.calls.map(({ callID: toolCallId, tool: toolName, input }) => ({
            type: "tool-call",
            toolCallId,
            toolName,
            input: JSON.stringify(input),
          }))
    return { content, finishReason: reasonOf(move), usage, warnings: [] }
  },
  async doStream(options) {
    return { stream: ReadableStream.from(streamParts(respond(options), options.abortSignal)) }
  },
}

/** What to do next, from the prompt alone: the model keeps no state. */
function respond({ prompt, tools = [], toolChoice }: LanguageModelV4CallOptions): OfflineMove {
  const lastUser = prompt.findLastIndex(({ role }) => role === "user")
  const requests = parseRequests(userText(prompt[lastUser]))
  const move = nextMove({
    requests,
    offered: new Set(tools.map(({ name }) => name)),
    results: readResults(prompt.slice(lastUser + 1)),
    turn: prompt.filter(({ role }) => role === "user").length,
    mayCall: toolChoice?.type !== "none",
  })
  if ("calls" in move) return move
  const isLost = requests.length === 0 || requests.some(({ kind }) => kind === "unknown")
  const isFirst = !prompt.some(hasIntroduction)
  const paragraphs = [move.answer, isLost ? abilities : "", isFirst ? introduction : ""]
  return { answer: paragraphs.filter((text) => text !== "").join("\n\n") }
}

/**
 * What the person wrote, or what the command says that they wrote. Text in angle brackets is what Tackle put beside it:
 * files, reminders.
 */
function userText(message: LanguageModelV4Message | undefined): string {
  if (message?.role !== "user") return ""
  const texts = message.content.flatMap((part) => (part.type === "text" ? [part.text.trim()] : []))
  const [written = "", ...added] = texts.filter((text) => !text.startsWith("<"))
  return written.startsWith("/") ? (added.at(-1) ?? written) : written
}

function hasIntroduction(message: LanguageModelV4Message): boolean {
  if (message.role !== "assistant") return false
  return message.content.some((part) => part.type === "text" && part.text.includes(introduction))
}

function readResults(messages: LanguageModelV4Prompt): Map<string, string> {
  const results = new Map<string, string>()
  for (const message of messages) {
    if (message.role !== "tool") continue
    for (const part of message.content) {
      if (part.type !== "tool-result") continue
      results.set(part.toolCallId, part.output.type === "text" ? part.output.value : "")
    }
  }
  return results
}

function reasonOf(move: OfflineMove): LanguageModelV4FinishReason {
  return { unified: "answer" in move ? "stop" : "tool-calls", raw: undefined }
}

/** Pieces of this many characters, as real models stream. */
const pieceLength = 40

function* streamParts(
  move: OfflineMove,
  signal: AbortSignal | undefined,
): Generator<LanguageModelV4StreamPart> {
  yield { type: "stream-start", warnings: [] }
  if ("answer" in move) {
    yield { type: "text-start", id: "text" }
    for (const delta of pieces(move.answer)) {
      signal?.throwIfAborted()
      yield { type: "text-delta", id: "text", delta }
    }
    yield { type: "text-end", id: "text" }
  } else {
    for (const { callID: id, tool: toolName, input } of move.calls) {
      const text = JSON.stringify(input)
      yield { type: "tool-input-start", id, toolName }
      for (const delta of pieces(text)) {
        signal?.throwIfAborted()
        yield { type: "tool-input-delta", id, delta }
      }
      yield { type: "tool-input-end", id }
      yield { type: "tool-call", toolCallId: id, toolName, input: text }
    }
  }
  yield { type: "finish", finishReason: reasonOf(move), usage }
}

function pieces(text: string): string[] {
  return Array.from({ length: Math.ceil(text.length / pieceLength) }, (_, index) =>
    text.slice(index * pieceLength, (index + 1) * pieceLength),
  )
}
