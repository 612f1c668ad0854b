import type { ModelInfo } from "../model/model.ts"
import type { MessageWithParts } from "../schema/message.ts"
import { TackleError, UsageError } from "../util/errors.ts"
import type { Spent } from "./budget.ts"
import type { CompactionResult } from "./handle.ts"
import { compactionOf } from "./history.ts"

/** Keeps the history within the model's context during one run. */
export interface ContextLimit {
  /** Must be called before each step. Compacts when the last step came near the limit. */
  beforeStep(): Promise<void>
  /**
   * Handles a history that the model refused as too long. Returns true if it was compacted and the step can be
   * retried.
   */
  afterOverflow(): Promise<boolean>
  /** Costs of the summaries. */
  readonly spent: Spent[]
}

/** Maximum compactions in a row that still end in a refusal. */
const maxInRow = 2

/** Creates the room of a run. After `compact` failed once, it is not called again. */
export function createContextLimit({
  history,
  info,
  compact,
  warn,
}: {
  history: readonly MessageWithParts[]
  info: ModelInfo
  compact(): Promise<CompactionResult>
  /**
   * Called once when the history (`used` tokens) gets close to its `room`, and again after it was shorter in between.
   */
  warn(state: Fill): void
}): ContextLimit {
  const spent: Spent[] = []
  let inRow = 0
  let failed = false
  let warned = false

  async function tryOnce(): Promise<boolean> {
    if (failed) return false
    try {
      spent.push(...(await compact()).spent)
      return true
    } catch (error) {
      if (error instanceof UsageError || (TackleError.isInstance(error) && error.code === "store"))
        throw error
      // The next step, or the earlier refusal, reports the problem.
      failed = true
      return false
    }
  }

  return {
    spent,
    async beforeStep() {
      const last = history.at(-1)
      if (last?.message.role === "assistant" && !last.message.error) inRow = 0
      const fill = fillOf(history, info)
      if (!fill) return
      const filling = fill.used >= fill.room * warningShare
      if (filling && !warned) warn(fill)
      warned = filling
      if (fill.used >= fill.room) await tryOnce()
    },
    async afterOverflow() {
      inRow += 1
      return inRow <= maxInRow && (await tryOnce())
    },
  }
}

/** Tokens reserved for the answer of a model without a known output limit, at most half of the context. */
const defaultAnswer = 20_000

/** Share of the room from which the user is warned. */
const warningShare = 0.8

/** Tokens of the history at its last step, and the maximum that leaves room for an answer. */
interface Fill {
  used: number
  room: number
}

/** Returns undefined if the limit is unknown, or if there was no step since a compaction. */
function fillOf(history: readonly MessageWithParts[], { limit }: ModelInfo): Fill | undefined {
  const { context, output } = limit
  if (!context) return undefined
  const last = history.findLast((entry) => entry.message.role === "assistant" || compactionOf(entry))
  if (last?.message.role !== "assistant") return undefined
  const { tokens } = last.message
  const used = tokens.input + tokens.output + tokens.reasoning + tokens.cache.read + tokens.cache.write
  return { used, room: context - Math.min(output ?? defaultAnswer, context / 2) }
}
