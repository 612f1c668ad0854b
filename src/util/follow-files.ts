import { changedSince, type FileStamps, isCurrent, stampFiles } from "./file-stamp.ts"

/** Something that was read from files, and is read again when one of them has changed. */
export interface FollowedFiles<T> {
  /** True where something is not what it was when the files were read. A `stat` for each file and folder, nothing else. */
  changed(): boolean
  /** The same between the steps of a run, where it is not to cost: looks again only 200 ms after it was looked at last. */
  changedLately(): boolean
  /** What the files hold now. Readers at the same time share one reading; where nothing changed nothing is read. */
  read(): Promise<T>
  /** What was read last. */
  last(): T
}

/** Which files, and how they are read. */
export interface FollowOptions<T> {
  /** Absolute paths of files and directories, there or not, whose change makes it worth reading again. */
  watched(): readonly string[]
  /** Files beside these, as they were when they were read. */
  besides?(): Iterable<FileStamps>
  read(): Promise<T>
  /** What stands where reading failed, or throws. Until something changes it is not tried again. */
  onFailure(error: unknown): T
  /** What `last` gives before anything was read. */
  initial: T
  /** From what `initial` was read. Without it the files are read when they are first asked for. */
  begun?: Beginning
}

/**
 * What was read before anybody looked after it. To look costs nothing at the start: it is done 400 ms later at
 * the earliest, and then by the times of the files.
 */
export interface Beginning {
  /** When reading began, in milliseconds since the epoch. */
  since: number
  /** The files that it was read from, as absolute paths: one that is gone is a change. */
  files: readonly string[]
}

/** How long what was seen of the files stands between steps. A model takes longer to answer. */
const restMs = 200

/** How long what was read at the start stands: a slow machine takes half of it to its first request. */
const firstRestMs = 400

/** See {@link FollowedFiles}. Nothing is read yet. */
export function followFiles<T>(options: FollowOptions<T>): FollowedFiles<T> {
  let last = options.initial
  let places: FileStamps | undefined
  let reading: Promise<T> | undefined
  let { begun } = options
  let lookedAt = begun ? performance.now() : Number.NEGATIVE_INFINITY
  const rests = (ms = restMs) => performance.now() - lookedAt < ms

  function changed(): boolean {
    if (begun && rests(firstRestMs)) return false
    lookedAt = performance.now()
    if (begun) places = unchangedSince(begun)
    begun = undefined
    if (!places || !isCurrent(places)) return true
    for (const stamps of options.besides?.() ?? []) if (!isCurrent(stamps, places)) return true
    return false
  }

  /** The first look. Undefined where something changed. */
  function unchangedSince({ since, files }: Beginning): FileStamps | undefined {
    // Before the times are asked for: what changes from here on differs from it.
    const stamps = stampFiles([...options.watched(), ...files])
    const gone = files.some((path) => stamps.get(path) === "")
    return gone || [...stamps.keys()].some((path) => changedSince(path, since)) ? undefined : stamps
  }

  async function readAgain(): Promise<T> {
    // Before all else: what changes from here on is a change.
    const before = stampFiles(options.watched())
    try {
      return await options.read()
    } finally {
      // Also where it failed: until something changes, another look would find the same.
      places = before
    }
  }

  return {
    changed,
    changedLately: () => !rests() && changed(),
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
