/** A queue between a producer and one asynchronous reader. */
export interface Channel<T> extends AsyncIterableIterator<T> {
  /** Adds a value. Does nothing after `end`. */
  push(value: T): void
  /** Ends the iteration after the queued values have been read. */
  end(): void
  /** Like `end`, but the iteration then throws the error once. */
  fail(error: unknown): void
  /** Removes and returns the values that have not been read yet. */
  drain(): T[]
  /** Number of values that have not been read yet. */
  readonly size: number
}

/** Creates a channel. Calls `onLeave` once if the reader leaves the loop before `end` or `fail` is called. */
export function createChannel<T>(onLeave: () => void): Channel<T> {
  let queue: T[] = []
  /** Callbacks that resume reads that wait for a value. */
  const waiting: (() => void)[] = []
  let ended = false
  /** Throws the error that was passed to `fail`. */
  let rethrow: (() => never) | undefined

  function wakeAll(): void {
    for (const wake of waiting.splice(0)) wake()
  }

  return {
    push(value) {
      if (ended) return
      queue.push(value)
      wakeAll()
    },
    end() {
      ended = true
      wakeAll()
    },
    fail(error) {
      if (ended) return
      rethrow = () => {
        throw error
      }
      ended = true
      wakeAll()
    },
    drain() {
      const values = queue
      queue = []
      return values
    },
    get size() {
      return queue.length
    },
    [Symbol.asyncIterator]() {
      return this
    },
    async next() {
      for (;;) {
        const [value] = queue
        if (queue.length > 0) {
          queue.shift()
          return { done: false, value: value as T }
        }
        if (ended) {
          const fails = rethrow
          rethrow = undefined
          fails?.()
          return { done: true, value: undefined }
        }
        const { promise, resolve } = Promise.withResolvers<void>()
        waiting.push(resolve)
        await promise
      }
    },
    async return() {
      if (!ended) {
        ended = true
        onLeave()
      }
      queue = []
      wakeAll()
      return { done: true, value: undefined }
    },
  }
}
