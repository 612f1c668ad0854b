/** Tracks the time that a call spends waiting for the user. Parallel waits count once. */
export interface UserWaits {
  /** Runs `work`. The time from its call to `begin` until it ends counts as waiting for the user. */
  during<T>(work: (begin: () => void) => Promise<T>): Promise<T>
  /** Returns the total waiting time in milliseconds, including a wait in progress. */
  total(): number
}

/** Creates a tracker with no wait in progress. */
export function createUserWaits(): UserWaits {
  let open = 0
  let since = 0
  let sum = 0

  return {
    async during(work) {
      let begun = false
      try {
        return await work(() => {
          if (begun) return
          begun = true
          if (open === 0) since = performance.now()
          open += 1
        })
      } finally {
        if (begun) open -= 1
        if (begun && open === 0) sum += performance.now() - since
      }
    },
    total: () => Math.round(sum + (open > 0 ? performance.now() - since : 0)),
  }
}
