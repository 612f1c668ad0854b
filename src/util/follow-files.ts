import { changedSince, type FileStamps, isCurrent, stampFiles } from "./file-stamp.ts"

/** A value that is read from files, and read again when one of them changes. */
export interface FollowedFiles<T> {
  /** Returns true if a file changed since it was read. Costs one `stat` per file and directory. */
  changed(): boolean
  /** Like `changed`, but checks at most every 200 ms. For use between the steps of a run. */
  changedLately(): boolean
  /** Returns the current value. Reads only if a file changed. Concurrent reads share one. */
  read(): Promise<T>
  /** Returns the last value without checking. */
  last(): T
}

/** The files, and how to read them. */
export interface FollowOptions<T> {
  /** Returns absolute paths of files and directories, which may be missing. A change of one triggers a read. */
  watched(): readonly string[]
  /** Returns stamps of further files as of the last read. */
  besides?(): Iterable<FileStamps>
  read(): Promise<T>
  /** Returns the value to use after a failed read, or throws. The read is not retried until a file changes. */
  onFailure(error: unknown): T
  /** The value of `last` before the first read. */
  initial: T
  /** Set if `initial` was read from the files. Otherwise the first `read` reads them. */
  begun?: Beginning
}

/**
 * Describes an initial read that recorded no stamps. The first check happens 400 ms later at the earliest and uses the
 * times of the files, so it costs nothing at startup.
 */
export interface Beginning {
  /** Start of the read, in milliseconds since the epoch. */
  since: number
  /** The absolute paths of the files that were read. A missing file counts as a change. */
  files: readonly string[]
}

/** Minimum time between two checks in a run. A model takes longer to answer. */
const checkIntervalMs = 200

/** Time before the first check after `begun`. A slow machine needs half of it until its first request. */
const firstCheckMs = 400

/** Creates {@link FollowedFiles}. Reads nothing yet. */
export function followFiles<T>(options: FollowOptions<T>): FollowedFiles<T> {
  let last = options.initial
  let stamps: FileStamps | undefined
  let reading: Promise<T> | undefined
  let { begun } = options
  let checkedAt = begun ? performance.now() : Number.NEGATIVE_INFINITY
  const checkedWithin = (ms: number) => performance.now() - checkedAt < ms

  function changed(): boolean {
    if (begun && checkedWithin(firstCheckMs)) return false
    checkedAt = performance.now()
    if (begun) stamps = unchangedSince(begun)
    begun = undefined
    if (!stamps || !isCurrent(stamps)) return true
    for (const other of options.besides?.() ?? []) if (!isCurrent(other, stamps)) return true
    return false
  }

  /** The first check. Returns the stamps, or undefined if a file changed. */
  function unchangedSince({ since, files }: Beginning): FileStamps | undefined {
    // Before the times are checked, so that later changes differ from the stamps.
    const now = stampFiles([...options.watched(), ...files])
    const gone = files.some((path) => now.get(path) === "")
    return gone || [...now.keys()].some((path) => changedSince(path, since)) ? undefined : now
  }

  async function readAgain(): Promise<T> {
    // First, so that changes during the read are noticed.
    const before = stampFiles(options.watched())
    try {
      return await options.read()
    } finally {
      // After a failure too: until a file changes, another read would fail the same way.
      stamps = before
    }
  }

  return {
    changed,
    changedLately: () => !checkedWithin(checkIntervalMs) && changed(),
    last: () => last,
    async read() {
      if (reading) return reading
      if (!changed()) return last
      reading = readAgain()
        .catch(options.onFailure)
        .then((now) => {
          last = now
          return now
        })
        .finally(() => {
          reading = undefined
        })
      return reading
    },
  }
}
