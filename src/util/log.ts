import { mkdirSync, openSync, readdirSync, rmSync, writeSync } from "node:fs"
import { join } from "node:path"

/** In rising weight. */
export type LogLevel = "debug" | "info" | "warn" | "error"

/** Structured notes for whoever looks into a fault. Never on stdout, never with secrets. */
export interface Log {
  write(level: LogLevel, message: string, fields?: Record<string, unknown>): void
  /** The file of today, or undefined where the directory cannot be written. */
  readonly path: string | undefined
}

/** Days that log files are kept. */
const keptDays = 7

/**
 * JSON lines in `<directory>/tackle-<day>.log`, made at the first note; files older than a week are removed then.
 * `echo` also gets each line as text. A disk that refuses silences the file, never the program. Lines are written at the
 * end of a turn of the event loop, those of errors at once.
 */
export function createLog(options: {
  directory: string
  echo?: (line: string) => void
  /** Takes out of what is noted what nobody is to see. */
  hide?: <T>(value: T) => T
}): Log {
  const path = join(options.directory, `tackle-${new Date().toISOString().slice(0, 10)}.log`)
  const { hide = (value) => value } = options
  let state: "new" | "open" | "broken" = "new"
  let descriptor = -1

  let waiting: Line[] = []
  let timer: NodeJS.Immediate | undefined

  function append(line: Line): void {
    // Whoever leaves the process at once still has what was noted.
    if (state === "new" && waiting.length === 0) process.once("exit", flush)
    waiting.push(line)
    if (line.level === "error") flush()
    else timer ??= setImmediate(flush)
  }

  /** Writes what waits. A line costs more than the step of a run that it tells of, so it is written after that. */
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
        // Kept open until the process ends: opening it for each line would cost ten times the line.
        descriptor = openSync(path, "a", 0o600)
        state = "open"
      }
      writeSync(descriptor, lines.map((line) => `${asJson(line)}\n`).join(""))
    } catch (error) {
      state = "broken"
      options.echo?.(`warn: the log file cannot be written: ${String(error)}`)
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
  /** In milliseconds. */
  time: number
  level: LogLevel
  message: string
  fields: Record<string, unknown>
}

function asJson({ time, level, message, fields }: Line): string {
  // What every line has comes over a field of the same name.
  return JSON.stringify({ ...fields, time: new Date(time).toISOString(), level, message, pid: process.pid })
}

/** Whoever notes what is no JSON must not silence the others. */
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
  for (const name of names.sort().slice(0, -keptDays)) rmSync(join(directory, name), { force: true })
}
