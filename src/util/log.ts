import { mkdirSync, openSync, readdirSync, rmSync, writeSync } from "node:fs"
import { join } from "node:path"

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
 * `echo` also gets each line as text. A disk that refuses silences the file, never the program.
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

  function append(line: string): void {
    if (state === "broken") return
    try {
      if (state === "new") {
        mkdirSync(options.directory, { recursive: true })
        removeOld(options.directory)
        // Kept open until the process ends: opening it for each line would cost ten times the line.
        descriptor = openSync(path, "a", 0o600)
        state = "open"
      }
      writeSync(descriptor, `${line}\n`)
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
      const { message, fields } = hide({ message: given, fields: noted })
      append(JSON.stringify({ time: new Date().toISOString(), level, message, ...fields, pid: process.pid }))
      options.echo?.(
        `${level}: ${message}${Object.keys(fields).length > 0 ? ` ${JSON.stringify(fields)}` : ""}`,
      )
    },
  }
}

function removeOld(directory: string): void {
  const names = readdirSync(directory).filter((name) => /^tackle-\d{4}-\d\d-\d\d\.log$/.test(name))
  for (const name of names.sort().slice(0, -keptDays)) rmSync(join(directory, name), { force: true })
}
