import type { Agent } from "../agent/agent.ts"
import type { ListableFileTracker } from "../files/file-tracker.ts"
import type { Model } from "../model/model.ts"
import type { StreamLimits } from "../model/stream.ts"
import type { PluginHost } from "../plugin/host.ts"
import type { MessageWithParts } from "../schema/message.ts"
import type { ToolPart } from "../schema/part.ts"
import type { Session } from "../schema/session.ts"
import type { Todo } from "../schema/todo.ts"
import type { JobInfo } from "../tool/context.ts"
import { TackleError } from "../util/errors.ts"
import type { Spent } from "./cost.ts"
import { promptHistory, sizeOf } from "./prompt-history.ts"
import { pruneOutputs } from "./prune-outputs.ts"
import type { Recorder } from "./recorder.ts"
import { summarizeIfItFits } from "./summarize.ts"
import { summaryMessage } from "./summary-message.ts"
import { recordOf, summaryPrompt } from "./summary-request.ts"

/** What is made smaller, and by what means. */
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
  files: Pick<ListableFileTracker, "entries">
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
/** A summary that leaves more than this share has not done its work. */
const mustShrinkTo = 0.9
/** One turn of fewer characters is about as long as a summary, which begins with what was asked. */
const shortTurn = 1_000
/** The second attempt keeps nothing word for word. */
const attempts = 2
/** Characters of a token where text is dense, so that the request for a summary surely fits. */
const denseToken = 3

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
  const pruned = await pruneOutputs(given.slice(0, given.length - tail.length), input)
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

/** Characters that the record may have: of a model whose limit is not known, half of what it was given. */
function roomFor({ info }: Model, size: number): number {
  const { context, output = 0 } = info.limit
  if (!context) return size / 2
  return Math.max(1_000, (context - Math.min(output, context / 2)) * denseToken - summaryPrompt.length)
}
