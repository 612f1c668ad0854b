/**
 * Joins calls: the first runs at once, later ones at most once per interval with the newest value. After
 * `stop` nothing runs any more.
 */
export function createThrottle<T>(intervalMs: number, run: (value: T) => void) {
  let waiting: { value: T } | undefined
  let timer: NodeJS.Timeout | undefined
  let stopped = false

  function fire(): void {
    timer = undefined
    if (!waiting || stopped) return
    const { value } = waiting
    waiting = undefined
    timer = setTimeout(fire, intervalMs)
    timer.unref()
    run(value)
  }

  return {
    push(value: T): void {
      waiting = { value }
      if (!timer) fire()
    },
    stop(): void {
      stopped = true
      clearTimeout(timer)
    },
  }
}
