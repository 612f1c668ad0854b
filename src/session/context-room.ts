import type { ModelInfo } from "../model/model.ts"
import type { MessageWithParts } from "../schema/message.ts"
import { TackleError, UsageError } from "../util/errors.ts"
import type { Spent } from "./budget.ts"
import type { CompactionResult } from "./handle.ts"
import { compactionOf } from "./history.ts"

/** Sees to it, during one run, that the history fits into the model's context. */
export interface ContextRoom {
  /** To be called before each step: compacts where the last one came near the limit. */
  beforeStep(): Promise<void>
  /** The model refused the history as too long. True: it was compacted, so that the step can be tried again. */
  afterOverflow(): Promise<boolean>
  /** What the summaries took. */
  readonly spent: Spent[]
}

/** Compactions in a row that a refusal follows all the same. */
const maxInRow = 2

/** `compact` is not called again in the run once it has failed. */
export function createContextRoom({
  history,
  info,
  compact,
  warn,
}: {
  history: readonly MessageWithParts[]
  info: ModelInfo
  compact(): Promise<CompactionResult>
  /** Told once that the history, of `used` tokens, will soon be too long for its `room`; and again after it was shorter. */
  warn(state: Fill): void
}): ContextRoom {
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
      // The step that follows, or the refusal that came before, says what is wrong.
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

/** Tokens left free for an answer of a model whose output limit is not known. At most half of the context is left free. */
const defaultAnswer = 20_000

/** The part of the room from which on the person is warned. */
const warningShare = 0.8

/** Tokens of the history at its last step, and those it may have so that another answer fits. */
interface Fill {
  used: number
  room: number
}

/** Undefined where the limit is not known, or no step was made since a compaction. */
function fillOf(history: readonly MessageWithParts[], { limit }: ModelInfo): Fill | undefined {
  const { context, output } = limit
  if (!context) return undefined
  const last = history.findLast((entry) => entry.message.role === "assistant" || compactionOf(entry))
  if (last?.message.role !== "assistant") return undefined
  const { tokens } = last.message
  const used = tokens.input + tokens.output + tokens.reasoning + tokens.cache.read + tokens.cache.write
  return { used, room: context - Math.min(output ?? defaultAnswer, context / 2) }
}
