import type { Agent } from "../agent/agent.ts"
import { ProviderError } from "../model/errors.ts"
import type { Model } from "../model/model.ts"
import { type StreamLimits, streamStep } from "../model/stream.ts"
import type { PluginHost } from "../plugin/host.ts"
import type { MessageWithParts } from "../schema/message.ts"
import type { CompactionPart, TextPart, ToolPart } from "../schema/part.ts"
import type { Session } from "../schema/session.ts"
import type { Todo } from "../schema/todo.ts"
import type { JobInfo } from "../tool/job.ts"
import type { KnownFiles } from "../tool/ledger.ts"
import { throwIfAborted } from "../util/abort.ts"
import { TackleError } from "../util/errors.ts"
import { costOf, noTokens, type Spent } from "./cost.ts"
import { namedTools } from "./deferred-tools.ts"
import { hookSummary } from "./plugin-hooks.ts"
import { promptHistory, sizeOf } from "./prompt-history.ts"
import type { Recorder } from "./recorder.ts"
import { recordOf, shorten, summaryPrompt } from "./summary-request.ts"
import { newUserMessage, partOf } from "./user-message.ts"

export interface CompactionInput {
  session: Session
  agent: Agent
  model: Model
  /** The whole history. What is written is appended to it. */
  history: MessageWithParts[]
  recorder: Recorder
  /** True: nobody asked for it, and outputs that can be pruned may be enough. */
  auto: boolean
  todos: readonly Todo[]
  /** The files that the session has read or written. */
  files: Pick<KnownFiles, "entries">
  /** Those of the session that still run. */
  jobs: readonly JobInfo[]
  /** Writes an output to a file and returns its path. */
  spill(part: ToolPart, output: string): string
  limits: StreamLimits
  plugins?: PluginHost | undefined
  signal: AbortSignal
}

/**
 * How much smaller the session is for the model, in characters, and what the summary took. Neither pruned nor summarized:
 * there was nothing to compact yet.
 */
export interface CompactionResult {
  before: number
  after: number
  pruned: number
  summarized: boolean
  spent: Spent[]
}

/** A session could not be made smaller. It is as it was, but for outputs that were pruned. */
export class CompactionError extends TackleError {
  constructor(reason: string) {
    super(
      `The session could not be compacted: ${reason}. Begin a new one, or fork this one from an earlier message.`,
      {
        code: "session.compaction",
        recoverable: false,
      },
    )
  }
}

/** The part of the room that the newest messages may keep, word for word. */
const tailShare = 0.25
/** Pruned outputs are enough where they leave at most so much. */
const enough = 0.6
/** Outputs below this are not worth a file. In characters. */
const smallOutput = 1_000
/** A summary that leaves more than this share has not done its work. */
const mustShrinkTo = 0.9
/** One turn of fewer characters is about as long as a summary, which begins with what was asked. */
const shortTurn = 1_000
/** The second attempt keeps nothing word for word. */
const attempts = 2
/** Of the person's request, in characters. */
const requestCharacters = 8_000
/** Characters of a token where text is dense, so that the request for a summary surely fits. */
const denseToken = 3

/** With more files the part would be too large to be told, at some 200 bytes each: they are then looked for in the calls. */
const mostSeen = 1_000

/**
 * Makes the history that the model is given smaller: old outputs become pointers to files, then what is old becomes a
 * summary. A call and its result stay together, since they are one part. Throws {@link CompactionError} where two
 * attempts did not make it smaller, `AbortedError`, and what asking the model throws.
 */
export async function compact(input: CompactionInput): Promise<CompactionResult> {
  const { history } = input
  const given = promptHistory(history)
  const before = sizeOf(given)
  const tail = tailOf(given, before * tailShare)
  const pruned = await prune(given.slice(0, given.length - tail.length), input)
  const after = sizeOf(given)
  const result: CompactionResult = { before, after, pruned, summarized: false, spent: [] }
  if (input.auto && after <= before * enough) return result
  if (!input.auto && pruned === 0 && isShort(given, before)) return result

  for (let attempt = 1; attempt <= attempts; attempt += 1) {
    const kept = attempt === 1 ? tail : []
    const head = given.slice(0, given.length - kept.length)
    if (head.length === 0) continue
    const room = roomFor(input.model, before) / attempt
    const summary = await summarizeIfItFits(recordOf(head, room), input)
    if (!summary) continue
    result.spent.push({ tokens: summary.tokens, cost: summary.cost })
    const entry = summaryMessage(summary, kept, input)
    const size = sizeOf([entry, ...kept])
    if (summary.text === "" || size > before * mustShrinkTo) continue
    await input.recorder.write({ messages: [entry.message], created: true, parts: entry.parts })
    history.push(entry)
    return { ...result, after: size, summarized: true }
  }
  throw new CompactionError(`${attempts} summaries did not make it smaller`)
}

/** A summary of it would be no shorter. */
function isShort(given: readonly MessageWithParts[], size: number): boolean {
  const prompts = given.filter(({ message }) => message.role === "user").length
  return given.length < 2 || (prompts < 2 && size < shortTurn)
}

/** The newest messages that fit. */
function tailOf(messages: readonly MessageWithParts[], room: number): MessageWithParts[] {
  let size = 0
  const first = messages.findLastIndex((entry) => {
    size += sizeOf([entry])
    return size > room
  })
  return messages.slice(first + 1)
}

/** Returns how many outputs were replaced. The parts become others, so that nobody takes them for the old ones. */
async function prune(
  entries: readonly MessageWithParts[],
  { spill, recorder }: CompactionInput,
): Promise<number> {
  const changed: ToolPart[] = []
  for (const { parts } of entries) {
    for (const [index, part] of parts.entries()) {
      if (part.type !== "tool" || part.parentCallID !== undefined || part.state.status !== "completed")
        continue
      const { state } = part
      const small = state.output.length < smallOutput && !state.attachments?.length
      if (state.pruned !== undefined || small) continue
      const { outputPath } = state.metadata
      const pruned = typeof outputPath === "string" ? outputPath : spill(part, state.output)
      const next: ToolPart = { ...part, state: { ...state, pruned } }
      parts[index] = next
      changed.push(next)
    }
  }
  if (changed.length > 0) await recorder.write({ parts: changed })
  return changed.length
}

/** Characters that the record may have: of a model whose limit is not known, half of what it was given. */
function roomFor({ info }: Model, size: number): number {
  const { context, output = 0 } = info.limit
  if (!context) return size / 2
  return Math.max(1_000, (context - Math.min(output, context / 2)) * denseToken - summaryPrompt.length)
}

interface Summary extends Spent {
  text: string
}

/** Undefined where even the record is too long for the model. */
async function summarizeIfItFits(record: string, input: CompactionInput): Promise<Summary | undefined> {
  try {
    return await summarize(record, input)
  } catch (error) {
    if (error instanceof ProviderError && error.kind === "context-overflow") return undefined
    throw error
  }
}

async function summarize(record: string, input: CompactionInput): Promise<Summary> {
  const { session, model, limits, plugins, signal } = input
  throwIfAborted(signal)
  const system = await hookSummary(plugins, session.id, summaryPrompt, signal)
  const summary: Summary = { text: "", tokens: noTokens, cost: 0 }
  const events = streamStep({
    language: await model.language(),
    info: model.info,
    prompt: [
      { role: "system", content: system },
      { role: "user", content: [{ type: "text", text: record.toWellFormed() }] },
    ],
    tools: [],
    limits,
    signal,
  })
  for await (const event of events) {
    if (event.type === "text-delta") summary.text += event.delta
    if (event.type !== "finish") continue
    summary.tokens = event.tokens
    summary.cost = costOf(event.tokens, model.info.cost)
  }
  summary.text = summary.text.trim()
  return summary
}

function summaryMessage(
  { text: summary, tokens, cost }: Summary,
  kept: readonly MessageWithParts[],
  input: CompactionInput,
): MessageWithParts {
  const { session, agent, model, auto } = input
  const message = newUserMessage({ session, agent, model })
  const part = partOf(message)
  const first = kept[0]?.message.id
  const compaction: CompactionPart = { ...part(), type: "compaction", auto, tokens, cost }
  if (first !== undefined) compaction.from = first
  const tools = namedTools(input.history)
  if (tools.length > 0) compaction.tools = tools
  const seen = input.files.entries()
  if (seen.length <= mostSeen) compaction.seen = seen.map(([path, stamp]) => ({ path, stamp }))
  const text: TextPart = { ...part(), type: "text", synthetic: true, text: contextText(summary, kept, input) }
  return { message, parts: [compaction, text] }
}

/** The summary with what must not get lost in it. */
function contextText(
  summary: string,
  kept: readonly MessageWithParts[],
  { history, todos, jobs, auto }: CompactionInput,
): string {
  const request = kept.some(isRequest) ? undefined : history.findLast(isRequest)
  const words = request?.parts.flatMap((part) => (part.type === "text" && !part.synthetic ? [part.text] : []))
  const open = todos.filter(({ status }) => status !== "completed" && status !== "cancelled")
  return [
    `To save room, what came before was replaced by this summary:\n\n${summary}`,
    ...(words
      ? [`The person's last request, word for word:\n${shorten(words.join("\n"), requestCharacters)}`]
      : []),
    ...(open.length > 0
      ? [`Open to-dos:\n${open.map(({ content, status }) => `- ${content} (${status})`).join("\n")}`]
      : []),
    ...(jobs.length > 0
      ? [
          `Jobs that still run:\n${jobs.map(({ id, command }) => `- ${id}: ${shorten(command, 200)}`).join("\n")}`,
        ]
      : []),
    ...(auto ? ["Go on with the work from where it stands. Do not repeat what is done."] : []),
  ].join("\n\n")
}

/** True for a message in the person's own words. */
function isRequest({ message, parts }: MessageWithParts): boolean {
  return message.role === "user" && parts.some((part) => part.type === "text" && !part.synthetic)
}
