import type { Model } from "../model/model.ts"
import type { MessageWithParts } from "../schema/message.ts"
import type { ToolPart } from "../schema/part.ts"
import { createFullText, createSpillOpener } from "../tool/spill.ts"
import { TackleError } from "../util/errors.ts"
import { newId } from "../util/id.ts"
import type { Conversation } from "./conversation.ts"
import type { CompactionResult } from "./handle.ts"
import { promptHistory, sizeOf } from "./history.ts"
import { type CompactionOptions, recordOf, summarize, summaryMessage, summaryPrompt } from "./summary.ts"

/** Thrown when a session cannot be made smaller. The session is unchanged, except for pruned outputs. */
export class CompactionError extends TackleError {
  constructor(reason: string) {
    super(
      `The session could not be compacted: ${reason}. Start a new session, or fork this session from an earlier message.`,
      { code: "session.compaction", recoverable: false },
    )
  }
}

/** Maximum share of the history, counted from the newest message, that a summary does not replace. */
const tailShare = 0.25
/**
 * Pruning is enough if it reduces the history to at most this share of its original size. Otherwise, a summary is
 * created.
 */
const enough = 0.6
/** Maximum share of the original size after a summary. A longer summary is rejected. */
const mustShrinkTo = 0.9
/** Size in characters below which a single turn is not summarized, because the summary would be about as long. */
const shortTurn = 1_000
/** Number of attempts to summarize. The second attempt includes the newest messages. */
const attempts = 2
/**
 * Assumed number of characters per token. It is low enough for dense text, so that the summary request fits the
 * context.
 */
const denseToken = 3
/** Size in characters below which an output is not moved to a file. */
const smallOutput = 1_000

/**
 * Reduces the history that the model receives. First replaces old outputs with references to files, then old messages
 * with a summary. A call and its result stay together, because they are one part. Throws {@link CompactionError} if two
 * attempts fail to reduce the size, `AbortedError` if the signal aborts, and the errors of the model request.
 */
export async function compactConversation(
  conversation: Conversation,
  options: CompactionOptions,
): Promise<CompactionResult> {
  const history = await conversation.history()
  try {
    return await compact(conversation, history, options)
  } finally {
    conversation.shortened(history)
  }
}

async function compact(
  conversation: Conversation,
  history: MessageWithParts[],
  options: CompactionOptions,
): Promise<CompactionResult> {
  const { auto, model } = options
  const given = promptHistory(history)
  const before = sizeOf(given)
  const tail = tailOf(given, before * tailShare)
  const pruned = await pruneOutputs(given.slice(0, given.length - tail.length), conversation)
  const after = sizeOf(given)
  const result: CompactionResult = { before, after, pruned, summarized: false, spent: [] }
  if (auto && after <= before * enough) return result
  if (!auto && pruned === 0 && isShort(given, before)) return result

  for (let attempt = 1; attempt <= attempts; attempt += 1) {
    const kept = attempt === 1 ? tail : []
    const head = given.slice(0, given.length - kept.length)
    if (head.length === 0) continue
    const room = roomFor(model, before) / attempt
    const summary = await summarize(conversation, recordOf(head, room), options)
    if (!summary) continue
    const spent = { tokens: summary.tokens, cost: summary.cost }
    result.spent.push(spent)
    await conversation.engine.tenants?.record(conversation.session, newId("msg"), spent)
    const entry = await summaryMessage(conversation, summary, kept, options)
    const size = sizeOf([entry, ...kept])
    if (summary.text === "" || size > before * mustShrinkTo) continue
    await conversation.recorder.write({ messages: [entry.message], created: true, parts: entry.parts })
    history.push(entry)
    return { ...result, after: size, summarized: true }
  }
  throw new CompactionError(`${attempts} summaries did not make its history smaller`)
}

/** Returns true if a summary would not be shorter than the history. */
function isShort(given: readonly MessageWithParts[], size: number): boolean {
  const prompts = given.filter(({ message }) => message.role === "user").length
  return given.length < 2 || (prompts < 2 && size < shortTurn)
}

/** Returns the newest messages that fit in `room` characters. */
function tailOf(messages: readonly MessageWithParts[], room: number): MessageWithParts[] {
  let size = 0
  const first = messages.findLastIndex((entry) => {
    size += sizeOf([entry])
    return size > room
  })
  return messages.slice(first + 1)
}

/**
 * Returns the maximum length, in characters, of the record to summarize. If the context limit of the model is unknown,
 * returns half of the current size of the history.
 */
function roomFor({ info }: Model, size: number): number {
  const { context, output = 0 } = info.limit
  if (!context) return size / 2
  return Math.max(1_000, (context - Math.min(output, context / 2)) * denseToken - summaryPrompt.length)
}

/**
 * Replaces long outputs with references to files and returns the number of replaced outputs. Creates new part objects.
 */
async function pruneOutputs(
  entries: readonly MessageWithParts[],
  conversation: Conversation,
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
      const pruned = typeof outputPath === "string" ? outputPath : spill(conversation, part, state.output)
      if (pruned === undefined) continue
      const next: ToolPart = { ...part, state: { ...state, pruned } }
      parts[index] = next
      changed.push(next)
    }
  }
  if (changed.length > 0) await conversation.recorder.write({ parts: changed })
  return changed.length
}

/**
 * Writes an output to a spill file and returns its path, or undefined if the disk does not have enough space for the
 * whole output.
 */
function spill({ engine, session }: Conversation, part: ToolPart, output: string): string | undefined {
  const { spillRoot, spillBytes: maxBytes, mask } = engine
  const directory = `${spillRoot}/${session.id}`
  const full = createFullText(createSpillOpener({ directory, name: part.id, maxBytes, mask }))
  full.write(output)
  full.close()
  return full.problem === undefined ? full.path : undefined
}
