import { systemCode } from "./errors.ts"
import { readBootID, readProcess } from "./process-table.ts"

/** Enough to know a process again, and never to take a later one with its number for it. */
export interface ProcessIdentity {
  pid: number
  /** In clock ticks after boot. With `bootID` on Linux only. */
  startTime?: number
  bootID?: string
}

/** Our own process. */
export function identifyProcess(): ProcessIdentity {
  const startTime = readProcess(process.pid)?.startTime
  const bootID = readBootID()
  return {
    pid: process.pid,
    ...(startTime === undefined ? {} : { startTime }),
    ...(bootID === undefined ? {} : { bootID }),
  }
}

/** True while that very process runs. Without `/proc`: while any has its number. */
export function isProcessRunning({ pid, startTime, bootID }: ProcessIdentity): boolean {
  if (bootID === undefined || startTime === undefined) return hasNumber(pid)
  if (bootID !== readBootID()) return false
  const entry = readProcess(pid)
  return entry?.alive === true && entry.startTime === startTime
}

function hasNumber(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return systemCode(error) === "EPERM"
  }
}
