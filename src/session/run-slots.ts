import { AbortedError } from "../util/abort.ts"

/**
 * Limits how many runs are active at once in all engines that share the slots. Runs of subagents do not count.
 */
export interface RunSlots {
  /**
   * Waits for a free slot, and returns a function that frees it. Waiting runs of different tenants take turns. Rejects
   * with `AbortedError` when the signal aborts.
   */
  acquire(tenant: string | undefined, signal: AbortSignal): Promise<() => void>
}

interface WaitingRun {
  tenant: string | undefined
  start(): void
}

/** Creates slots for `maximum` runs. */
export function createRunSlots(maximum: number): RunSlots {
  const waiting: WaitingRun[] = []
  let served: (string | undefined)[] = []
  let active = 0

  function startNext(): void {
    while (active < maximum && waiting.length > 0) {
      const index = nextInTurn(
        waiting.map(({ tenant }) => tenant),
        served,
      )
      const [run] = waiting.splice(index, 1)
      if (!run) return
      served = afterTurn(served, run.tenant)
      active += 1
      run.start()
    }
  }

  function createRelease(): () => void {
    let isHeld = true
    return () => {
      if (!isHeld) return
      isHeld = false
      active -= 1
      startNext()
    }
  }

  return {
    acquire(tenant, signal) {
      const { promise, resolve, reject } = Promise.withResolvers<() => void>()
      const run: WaitingRun = {
        tenant,
        start() {
          signal.removeEventListener("abort", leave)
          resolve(createRelease())
        },
      }
      function leave(): void {
        waiting.splice(waiting.indexOf(run), 1)
        reject(new AbortedError())
      }
      if (signal.aborted) return Promise.reject(new AbortedError())
      signal.addEventListener("abort", leave, { once: true })
      waiting.push(run)
      startNext()
      return promise
    },
  }
}

/**
 * Returns the index of the waiting item to start next, or -1 if no item waits. Takes turns between groups, so that a
 * group with many items does not delay the other groups. Within a group, the oldest item is first. `waiting` contains
 * the group of each item, oldest first. `served` contains the groups in the order of their most recent start, as {@link
 * afterTurn} returns them.
 */
export function nextInTurn<G>(waiting: readonly G[], served: readonly G[]): number {
  // A group that was never served has the index -1.
  const ranks = waiting.map((group) => served.indexOf(group))
  return ranks.indexOf(Math.min(...ranks))
}

/** Returns the order of the groups after one of them has started an item. */
export function afterTurn<G>(served: readonly G[], group: G): G[] {
  return [...served.filter((each) => each !== group), group]
}
