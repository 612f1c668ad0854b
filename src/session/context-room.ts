import type { ModelInfo } from "../model/model.ts"
import type { MessageWithParts } from "../schema/message.ts"
import { TackleError, UsageError } from "../util/errors.ts"
import type { CompactionResult } from "./compact.ts"
import { compactionOf } from "./prompt-history.ts"

/** Sees to it, during one run, that the history fits into the model's context. */
export interface ContextRoom {
  /** To be called before each step: compacts where the last one came near the limit. */
  beforeStep(): Promise<void>
  /** The model refused the history as too long. True: it was compacted, so that the step can be tried again. */
  afterOverflow(): Promise<boolean>
  /** What the summaries took. */
  readonly spent: CompactionResult["spent"]
}

/** Compactions in a row that a refusal follows all the same. */
const maxInRow = 2

/** `compact` is not called again in the run once it has failed. */
export function createContextRoom({
  history,
  info,
  compact,
}: {
  history: readonly MessageWithParts[]
  info: ModelInfo
  compact(): Promise<CompactionResult>
}): ContextRoom {
  const spent: CompactionResult["spent"] = []
  let inRow = 0
  let failed = false

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
      if (isNearlyFull(history, info)) await tryOnce()
    },
    async afterOverflow() {
      inRow += 1
      return inRow <= maxInRow && (await tryOnce())
    },
  }
}

/** Tokens left free for an answer of a model whose output limit is not known. At most half of the context is left free. */
const defaultAnswer = 20_000

/** True where the last step since a compaction leaves no room for another answer. Never for an unknown limit. */
function isNearlyFull(history: readonly MessageWithParts[], { limit }: ModelInfo): boolean {
  const { context, output } = limit
  if (!context) return false
  const last = history.findLast((entry) => entry.message.role === "assistant" || compactionOf(entry))
  if (last?.message.role !== "assistant") return false
  const { tokens } = last.message
  const used = tokens.input + tokens.output + tokens.reasoning + tokens.cache.read + tokens.cache.write
  return used >= context - Math.min(output ?? defaultAnswer, context / 2)
}
