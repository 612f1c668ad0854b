import { changedSince, type FileStamps, isCurrent, stampFiles } from "./file-stamp.ts"

/** A value that is read from files, and read again when one of the files changes. */
export interface FollowedFiles<T> {
  /**
   * Returns true if a file changed since the latest read, or if the files have not been read yet. Returns false without
   * a check for 400 ms after an initial read ({@link FollowOptions.begun}). Costs one `stat` per file and directory.
   */
  changed(): boolean
  /**
   * Like `changed`, but checks at most once every 200 ms and returns false in between. For use between the steps of a
   * run.
   */
  changedLately(): boolean
  /** Returns the current value. Reads the files only if one changed. Concurrent calls share one read. */
  read(): Promise<T>
  /** Returns the latest value without checking the files. */
  last(): T
}

/** The files to follow, and the function that reads them. */
export interface FollowOptions<T> {
  /** Returns absolute paths of files and directories, which may not exist. A change to any of them triggers a read. */
  watched(): readonly string[]
  /** Returns stamps of additional files, taken during the latest read. */
  besides?(): Iterable<FileStamps>
  read(): Promise<T>
  /** Returns the value to use after a failed read, or throws. The read is not retried until a file changes. */
  onFailure(error: unknown): T
  /** The value that `last` returns before the first read. */
  initial: T
  /**
   * The read that produced `initial`, if `initial` was read from the files. If absent, the first call to `read` reads
   * the files.
   */
  begun?: Beginning
}

/**
 * An initial read that recorded no stamps. Following such a read costs nothing at startup, because the first check
 * happens at least 400 ms later. The check compares the files' times.
 */
export interface Beginning {
  /** Start of the read, in milliseconds since the epoch. */
  since: number
  /** Absolute paths of the files that were read. A file that is now missing counts as changed. */
  files: readonly string[]
}

/** Minimum time in ms between two checks in a run. Models usually take longer than that to answer. */
const checkIntervalMs = 200

/**
 * Time in ms before the first check after `begun`. Even a slow machine sends its first request within half this time.
 */
const firstCheckMs = 400

/** Creates {@link FollowedFiles}. Reads no files yet. */
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

  /** Performs the first check. Returns the current stamps, or undefined if a file changed since the initial read. */
  function unchangedSince({ since, files }: Beginning): FileStamps | undefined {
    // Take the stamps before checking the times, so that later changes differ from the stamps.
    const now = stampFiles([...options.watched(), ...files])
    const gone = files.some((path) => now.get(path) === "")
    return gone || [...now.keys()].some((path) => changedSince(path, since)) ? undefined : now
  }

  async function readAgain(): Promise<T> {
    // Take the stamps before reading, so that changes during the read are noticed.
    const before = stampFiles(options.watched())
    try {
      return await options.read()
    } finally {
      // Keep the stamps after a failure too: until a file changes, another read would fail the same way.
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
