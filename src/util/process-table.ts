import { readdirSync, readFileSync } from "node:fs"
import { systemCode } from "./errors.ts"

/** One line of the system's process table. */
export interface ProcessEntry {
  pid: number
  parent: number
  group: number
  session: number
  /** Clock ticks after boot. Tells a process from a later one with the same number. */
  startTime: number
  /** False for one that ended and only waits for its parent to notice: signals reach it and change nothing. */
  alive: boolean
}

/** Every process the system shows. Empty where there is no `/proc` (macOS). Costs about 15 µs a process. */
export function readProcessTable(): ProcessEntry[] {
  return readOrNothing(() => readdirSync("/proc"), [])
    .filter((name) => /^\d+$/.test(name))
    .map((name) => readProcess(Number(name)))
    .filter((entry) => entry !== undefined)
}

/** One process; undefined if there is none with this number, or no `/proc`. */
export function readProcess(pid: number): ProcessEntry | undefined {
  const stat = readOrNothing(() => readFileSync(`/proc/${pid}/stat`, "utf8"), "")
  // The second field is the program's name in parentheses, which may itself hold spaces and parentheses.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
  const [state, parent, group, session] = fields
  const startTime = fields[19]
  if (state === undefined || startTime === undefined) return undefined
  return {
    pid,
    parent: Number(parent),
    group: Number(group),
    session: Number(session),
    startTime: Number(startTime),
    alive: state !== "Z" && state !== "X",
  }
}

/** True if the environment that the process was started with holds this line, such as `NAME=value`. */
export function hasEnvironmentLine(pid: number, line: string): boolean {
  const environment = readOrNothing(() => readFileSync(`/proc/${pid}/environ`, "utf8"), "")
  return environment.split("\0").includes(line)
}

/** Changes with every boot, so that a process number of an earlier one is never taken for one of now. */
export function readBootID(): string | undefined {
  return readOrNothing(() => readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim(), undefined)
}

/** What is not there, gone by now or somebody else's is an answer here and no fault. */
function readOrNothing<T>(read: () => T, nothing: T): T {
  try {
    return read()
  } catch (error) {
    if (["ENOENT", "ESRCH", "EACCES", "EPERM"].includes(systemCode(error) ?? "")) return nothing
    throw error
  }
}
