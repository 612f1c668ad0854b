import { type FSWatcher, watch as watchFile } from "node:fs"
import type { DatabaseSync } from "node:sqlite"
import type { Store } from "./store.ts"

/** Watches for commits by other connections. */
export interface SqliteWatch {
  watch: Store["watch"]
  /** Ends all watches. */
  end(): void
}

/** Options for {@link createSqliteWatch}, in milliseconds. */
export interface SqliteWatchOptions {
  /** Interval between checks while the log does not change. Default: 2000. */
  idleMs?: number
  /** Time without log changes after which the checks become less frequent. Default: 2000. */
  quietMs?: number
}

/** Interval in milliseconds between checks while the log changes, and on systems that do not report changes. */
const activeMs = 200
/** Delay in milliseconds between a reported change to the log and the check. One commit causes several reports. */
const reportMs = 10

/**
 * Creates a watch on the database. Each commit by another connection changes `data_version`. The watch reads this value
 * when the system reports a write to the log, because a frequent timer would use most of the CPU time of an idle
 * process. A synced commit becomes visible only some time after its last write to the log, so checks continue for a
 * while after a report.
 */
export function createSqliteWatch(
  database: DatabaseSync,
  { idleMs = 2_000, quietMs = 2_000 }: SqliteWatchOptions = {},
): SqliteWatch {
  const version = database.prepare("PRAGMA data_version")
  const listeners = new Set<() => void>()
  let log: FSWatcher | undefined
  let timer: NodeJS.Timeout | undefined
  /** Time at which the timer will fire. */
  let due = 0
  let reported = 0
  let last: unknown

  /**
   * Returns a number that changes with each commit by another connection. If the number cannot be read now, returns the
   * last known number.
   */
  function read(): unknown {
    try {
      return version.get()?.data_version
    } catch {
      return last
    }
  }

  function check(): void {
    const isQuiet = log && performance.now() - reported > quietMs
    checkAfter(isQuiet ? idleMs : activeMs)
    const now = read()
    if (now === last) return
    last = now
    for (const listener of [...listeners]) listener()
  }

  function checkAfter(ms: number): void {
    clearTimeout(timer)
    due = performance.now() + ms
    timer = setTimeout(check, ms).unref()
  }

  function onReport(): void {
    reported = performance.now()
    if (due > reported + reportMs) checkAfter(reportMs)
  }

  function begin(): void {
    // No other connection can commit to a database in memory.
    if (!database.location()) return
    last = read()
    log = watchLog(database, onReport, () => {
      log = undefined
      checkAfter(activeMs)
    })
    reported = performance.now()
    checkAfter(activeMs)
  }

  function end(): void {
    clearTimeout(timer)
    timer = undefined
    log?.close()
    log = undefined
  }

  return {
    watch(listener) {
      // Each watch gets a new wrapper, so the same listener can be added twice.
      const entry = () => listener()
      listeners.add(entry)
      if (!timer) begin()
      return () => {
        listeners.delete(entry)
        if (listeners.size === 0) end()
      }
    },
    end,
  }
}

/**
 * Watches the log of the database. Calls `onReport` after each write. Returns undefined if the log cannot be watched,
 * or if the system does not report writes immediately. Calls `onEnd` if the reports end, for example because the log
 * was removed.
 */
function watchLog(database: DatabaseSync, onReport: () => void, onEnd: () => void): FSWatcher | undefined {
  // Windows reports a write only after the file is closed.
  if (process.platform !== "linux" && process.platform !== "darwin") return undefined
  try {
    const log = watchFile(`${database.location()}-wal`, { persistent: false })
    log.on("change", (kind) => {
      if (kind === "change") return onReport()
      log.close()
      onEnd()
    })
    log.on("error", () => {
      log.close()
      onEnd()
    })
    return log
  } catch {
    // The system allows no more watches, or the database is read-only and has no log.
    return undefined
  }
}
