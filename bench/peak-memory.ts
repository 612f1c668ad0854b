import { readdirSync, readFileSync } from "node:fs"

/**
 * Interval in ms between reads of the peak. The system tracks the peak, so only the time after the last read is missed.
 */
const everyMs = 5

/**
 * Tracks the peak resident set size of a process, in bytes, until stopped. Works only on Linux and returns 0 on other
 * systems.
 */
export function watchPeakMemory(pid: number, options: { group?: boolean } = {}): { stop(): number } {
  let peak = 0
  const read = () => {
    // Scanning all processes is expensive. Only peers need it, because their launcher starts another process.
    const pids = options.group ? groupOf(pid) : [pid]
    for (const each of pids) peak = Math.max(peak, peakOf(each))
  }
  const timer = setInterval(read, options.group ? everyMs * 10 : everyMs)
  return {
    stop() {
      clearInterval(timer)
      return peak
    },
  }
}

function peakOf(pid: number): number {
  const kilobytes = /^VmHWM:\s+(\d+) kB$/m.exec(readProcess(pid, "status"))?.[1]
  return Number(kilobytes ?? 0) * 1024
}

function groupOf(leader: number): number[] {
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name))
  return pids.map(Number).filter((pid) => pid === leader || processGroup(pid) === leader)
}

/**
 * Returns the process group, which is the fifth field of `stat`. The process name before it is in parentheses and may
 * contain spaces.
 */
function processGroup(pid: number): number {
  const stat = readProcess(pid, "stat")
  return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[2])
}

/** Reads a file for a process in `/proc`. Returns an empty string if the process has ended. */
function readProcess(pid: number, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "utf8")
  } catch {
    return ""
  }
}
