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
import { counted, quoted } from "../util/words.ts"
import type { Model, ModelInfo } from "./model.ts"
import { type OfflineRequest, parseRequests } from "./offline-requests.ts"

/** The built-in model, for machines without another model. */
export const offlineInfo: ModelInfo = {
  ref: { providerID: "tackle", modelID: "offline" },
  name: "Tackle offline (rules, no intelligence)",
  toolCall: true,
  limit: {},
  cost: { input: 0, output: 0 },
  attachment: false,
}

/** Creates the model `tackle/offline`, which uses rules to convert simple requests to tool calls, without a network. */
export function createOfflineModel(): Model {
  return { info: offlineInfo, language: async () => offlineLanguage }
}

const introduction =
  'I am tackle/offline, a rule-based stand-in without intelligence. To use a real model, pass --model provider/model with its key in the environment, or set "model" in tackle.json.'

const abilities = `I can: list the files in DIR; find files named *.ts; read FILE; find TEXT in DIR; replace A with B in FILE; create FILE with TEXT; run COMMAND. Put text with commas or spaces in quotes; join several requests with "then".`

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

/** Derives the next action from the prompt. The model has no state. */
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
 * Returns the text that the user wrote, or a command's template. Skips the text in angle brackets that Tackle adds for
 * files and reminders.
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

/** Maximum number of characters per streamed delta. */
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

/** A call by the offline model. */
interface OfflineCall {
  callID: string
  tool: string
  input: Record<string, unknown>
}

/** Results of this turn's calls, by call id. */
type OfflineResults = ReadonlyMap<string, string>

/** A request with its calls in order. `calls` is empty if no offered tool can fulfill the request. */
interface Job {
  request: OfflineRequest
  calls: OfflineCall[]
}

/** The calls to make next, or the answer that ends the turn. */
type OfflineMove = { calls: OfflineCall[] } | { answer: string }

/**
 * Returns the next action of a turn. The requests and the offered tools determine the plan, and the results show its
 * progress. Does not repeat a failed call and skips the calls that depend on it. `turn` makes call ids unique in a
 * session.
 */
function nextMove(options: {
  requests: readonly OfflineRequest[]
  offered: ReadonlySet<string>
  results: OfflineResults
  turn: number
  /** Whether the model may make calls. If false, only an answer is allowed. */
  mayCall: boolean
}): OfflineMove {
  const { offered, results, turn } = options
  const jobs = options.requests.map((request, index) =>
    plan(request, { offered, prefix: `offline_${turn}_${index}` }),
  )
  const step: OfflineCall[] = []
  for (const job of jobs) {
    const call = pending(job, results)
    if (call === undefined) continue
    // Calls that only read run together in one step. Every other call waits for the calls before it.
    if (step.length > 0 && !(isLook(call) && step.every(isLook))) break
    step.push(call)
    if (!isLook(call) || job.calls.at(-1) !== call) break
  }
  return step.length > 0 && options.mayCall ? { calls: step } : { answer: report(jobs, results) }
}

/** Returns the job's first call without a result, or undefined if all calls have a result or one failed. */
function pending(job: Job, results: OfflineResults): OfflineCall | undefined {
  for (const call of job.calls) {
    const result = results.get(call.callID)
    if (result === undefined) return call
    if (failed(result)) return undefined
  }
  return undefined
}

function isLook({ tool }: OfflineCall): boolean {
  return tool === "list" || tool === "read" || tool === "grep" || tool === "glob"
}

function failed(result: string): boolean {
  return result.startsWith("Error: ")
}

type Step = [tool: string, input: Record<string, unknown>]

function plan(request: OfflineRequest, options: { offered: ReadonlySet<string>; prefix: string }): Job {
  const { offered, prefix } = options
  const usable = ways(request).find((way) => way.every(([tool]) => offered.has(tool))) ?? []
  const calls = usable.map(([tool, input], index) => ({ callID: `${prefix}_${index}`, tool, input }))
  return { request, calls }
}

/** Returns alternative plans for a request, best first. */
function ways(request: OfflineRequest): Step[][] {
  switch (request.kind) {
    case "list":
      return [
        [["list", inside(request.path)]],
        [["glob", { pattern: "*", ...inside(request.path) }]],
        [["bash", bash(`ls -la -- ${quoted(request.path)}`)]],
      ]
    case "glob":
      return [[["glob", { pattern: request.pattern, ...inside(request.path) }]]]
    case "read":
      return [[["read", { filePath: request.path }]]]
    case "search":
      return [[["grep", { pattern: literal(request.text), ...inside(request.path) }]]]
    case "replace": {
      const { from, to, path } = request
      const edit = { filePath: path, oldString: from, newString: to, replaceAll: true }
      return [
        [
          ["read", { filePath: path }],
          ["edit", edit],
        ],
      ]
    }
    case "write":
      return [[["write", { filePath: request.path, content: request.content }]]]
    case "run":
      return [[["bash", bash(request.command)]]]
    case "unknown":
      return []
  }
}

function inside(path: string): Record<string, unknown> {
  return path === "." ? {} : { path }
}

function bash(command: string): Record<string, unknown> {
  return { command, description: `Run ${command}` }
}

function literal(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|]/g, "\\$&")
}

function report(jobs: readonly Job[], results: OfflineResults): string {
  return jobs.map((job) => describe(job, results)).join("\n\n")
}

function describe({ request, calls }: Job, results: OfflineResults): string {
  if (request.kind === "unknown") return `I do not understand "${shorten(request.text, 120)}".`
  const task = nameOf(request, false)
  if (calls.length === 0) return `${task}: not done, because none of the available tools can do it.`
  const outcomes = calls.map(({ callID }) => results.get(callID))
  const failure = outcomes.find((outcome) => outcome !== undefined && failed(outcome))
  if (failure !== undefined) return `${task}: failed. ${shorten(failure, 400)}`
  const last = outcomes.at(-1)
  return last === undefined
    ? `${task}: not done.`
    : `${nameOf(request, true)}:\n${codeBlock(excerpt(last, request.kind === "run"))}`
}

function nameOf(request: Exclude<OfflineRequest, { kind: "unknown" }>, isDone: boolean): string {
  switch (request.kind) {
    case "list":
      return `Files in ${request.path}`
    case "glob":
      return `Files matching ${request.pattern} in ${request.path}`
    case "read":
      return `Read ${request.path}`
    case "search":
      return `Lines with "${request.text}" in ${request.path}`
    case "replace":
      return `${isDone ? "Replaced" : "Replace"} "${request.from}" with "${request.to}" in ${request.path}`
    case "write":
      return `${isDone ? "Wrote" : "Write"} ${request.path}`
    case "run":
      return `${isDone ? "Ran" : "Run"} ${request.command}`
  }
}

/** Returns output as a Markdown code block, because its lines are not Markdown. Returns a single line unchanged. */
function codeBlock(text: string): string {
  if (!text.includes("\n")) return text
  const ticks = text.match(/`+/g) ?? []
  const fence = "`".repeat(Math.max(3, ...ticks.map(({ length }) => length + 1)))
  return `${fence}\n${text}\n${fence}`
}

const shownLines = 12

/** Returns the first lines of a result. With `withEnd`, also returns the last lines. */
function excerpt(result: string, withEnd: boolean): string {
  const lines = result.split("\n").map((line) => shorten(line, 200))
  if (lines.length <= shownLines) return lines.join("\n")
  const tail = withEnd ? lines.slice(-shownLines / 2) : []
  const head = lines.slice(0, shownLines - tail.length)
  return [...head, `… (${counted(lines.length - head.length - tail.length, "more line")})`, ...tail].join(
    "\n",
  )
}

function shorten(text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length)}…` : text
}
