import { mkdirSync, openSync, readdirSync, rmSync, writeSync } from "node:fs"
import { join } from "node:path"

/** Severities, in ascending order. */
export type LogLevel = "debug" | "info" | "warn" | "error"

/** A structured log for troubleshooting. Never writes to stdout, and never contains secrets. */
export interface Log {
  write(level: LogLevel, message: string, fields?: Record<string, unknown>): void
  /** Path of the log file for the day on which the log was created. Undefined after a write error. */
  readonly path: string | undefined
}

/** Number of earlier log files to keep. */
const keptLogs = 7

/**
 * Creates a log that writes JSON lines to `<directory>/tackle-<day>.log`. The first entry removes all but the seven
 * newest log files, and creates the file. `echo` receives each entry as text. A write error disables only the file, and
 * `echo` still receives entries. Entries are written at the end of the current event loop turn. Errors are written
 * immediately.
 */
export function createLog(options: {
  directory: string
  echo?: (line: string) => void
  /** Removes secrets from a value. */
  hide?: <T>(value: T) => T
}): Log {
  const path = join(options.directory, `tackle-${new Date().toISOString().slice(0, 10)}.log`)
  const { hide = (value) => value } = options
  let state: "new" | "open" | "broken" = "new"
  let descriptor = -1

  let waiting: Line[] = []
  let timer: NodeJS.Immediate | undefined

  function append(line: Line): void {
    // Writes the entries if the process exits before the next turn.
    if (state === "new" && waiting.length === 0) process.once("exit", flush)
    waiting.push(line)
    if (line.level === "error") flush()
    else timer ??= setImmediate(flush)
  }

  /**
   * Writes the waiting lines. Writing is deferred because it takes longer than the run step that an entry describes.
   */
  function flush(): void {
    clearImmediate(timer)
    timer = undefined
    const lines = waiting
    waiting = []
    if (state === "broken" || lines.length === 0) return
    try {
      if (state === "new") {
        mkdirSync(options.directory, { recursive: true })
        removeOld(options.directory)
        // The file stays open, because opening it for each line would take ten times as long.
        descriptor = openSync(path, "a", 0o600)
        state = "open"
      }
      writeSync(descriptor, lines.map((line) => `${asJson(line)}\n`).join(""))
    } catch (error) {
      state = "broken"
      options.echo?.(`warn: cannot write the log file: ${String(error)}`)
    }
  }

  return {
    get path() {
      return state === "broken" ? undefined : path
    },
    write(level, given, noted = {}) {
      const { message, fields } = hide({ message: given, fields: writable(noted) })
      append({ time: Date.now(), level, message, fields })
      options.echo?.(
        `${level}: ${message}${Object.keys(fields).length > 0 ? ` ${JSON.stringify(fields)}` : ""}`,
      )
    },
  }
}

interface Line {
  /** Time in milliseconds since the epoch. */
  time: number
  level: LogLevel
  message: string
  fields: Record<string, unknown>
}

function asJson({ time, level, message, fields }: Line): string {
  // The standard fields override fields with the same name.
  return JSON.stringify({ ...fields, time: new Date(time).toISOString(), level, message, pid: process.pid })
}

/**
 * Returns the fields, or the error if the fields cannot be converted to JSON, because one bad entry must not disable
 * the log.
 */
function writable(fields: Record<string, unknown>): Record<string, unknown> {
  try {
    JSON.stringify(fields)
    return fields
  } catch (error) {
    return { unwritable: String(error) }
  }
}

function removeOld(directory: string): void {
  const names = readdirSync(directory).filter((name) => /^tackle-\d{4}-\d\d-\d\d\.log$/.test(name))
  for (const name of names.sort().slice(0, -keptLogs)) rmSync(join(directory, name), { force: true })
}
