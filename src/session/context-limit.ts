import type { ModelInfo } from "../model/model.ts"
import type { MessageWithParts } from "../schema/message.ts"
import type { Spent } from "../schema/spending.ts"
import { StoreError } from "../store/store.ts"
import { UsageError } from "../util/errors.ts"
import type { CompactionResult } from "./handle.ts"
import { compactionOf } from "./history.ts"

/** Keeps the history within the model's context during one run. */
export interface ContextLimit {
  /** Compacts the history if the previous step reached the limit. Must be called before each step. */
  beforeStep(): Promise<void>
  /** Compacts a history that the model rejected as too long. Returns true if the step can be retried. */
  afterOverflow(): Promise<boolean>
  /** Usage and cost of the summaries. */
  readonly spent: Spent[]
}

/** Maximum number of consecutive rejected steps that trigger a compaction. */
const maxInRow = 2

/** Creates the context limit for a run. `compact` is not called again after it fails once. */
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
   * Called once, when the size of the history (`used` tokens) approaches its maximum (`room` tokens). Called again only
   * if the history has been shortened in the meantime.
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
      if (error instanceof UsageError || StoreError.isThrown(error)) throw error
      // The rejected step or the next step reports the problem.
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

/**
 * Number of tokens reserved for the answer if the model's output limit is unknown. In any case, at most half of the
 * context is reserved.
 */
const defaultAnswer = 20_000

/** Share of `room` at which the user is warned. */
const warningShare = 0.8

/**
 * `used` is the number of tokens in the history at the latest step. `room` is the maximum that leaves space for an
 * answer.
 */
interface Fill {
  used: number
  room: number
}

/**
 * Returns how full the context is, or undefined if the limit is unknown or no step has run since the last compaction.
 */
function fillOf(history: readonly MessageWithParts[], { limit }: ModelInfo): Fill | undefined {
  const { context, output } = limit
  if (!context) return undefined
  const last = history.findLast((entry) => entry.message.role === "assistant" || compactionOf(entry))
  if (last?.message.role !== "assistant") return undefined
  const { tokens } = last.message
  const used = tokens.input + tokens.output + tokens.reasoning + tokens.cache.read + tokens.cache.write
  return { used, room: context - Math.min(output ?? defaultAnswer, context / 2) }
}
