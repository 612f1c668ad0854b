/** One piece of work at a time for each path. */
export interface PathLocks {
  /** Runs `work` when nothing else runs for any of the resolved paths. Rejects as `work` does. */
  run<T>(paths: readonly string[], work: () => Promise<T>): Promise<T>
}

/** Locks that know nothing of others. Whoever waits is served in the order of coming. */
export function createPathLocks(): PathLocks {
  const tails = new Map<string, Promise<unknown>>()

  async function runAlone<T>(path: string, work: () => Promise<T>): Promise<T> {
    const before = tails.get(path) ?? Promise.resolve()
    const { promise: tail, resolve: release } = Promise.withResolvers<void>()
    tails.set(path, tail)
    await before
    try {
      return await work()
    } finally {
      release()
      if (tails.get(path) === tail) tails.delete(path)
    }
  }

  return {
    // In one order for everybody, so that two never wait for each other.
    run: (paths, work) =>
      [...new Set(paths)].toSorted().reduceRight((inner, path) => () => runAlone(path, inner), work)(),
  }
}
