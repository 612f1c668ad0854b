/** Adds up how long a call waits for people. Waits side by side count once. */
export interface Waits {
  /** Runs `work`, which waits for somebody from when it calls `begin` until it ends. */
  during<T>(work: (begin: () => void) => Promise<T>): Promise<T>
  /** In milliseconds, what goes on included. */
  total(): number
}

/** Nobody is waited for yet. */
export function createWaits(): Waits {
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
          if (open === 0) since = Date.now()
          open += 1
        })
      } finally {
        if (begun) open -= 1
        if (begun && open === 0) sum += Date.now() - since
      }
    },
    total: () => sum + (open > 0 ? Date.now() - since : 0),
  }
}
