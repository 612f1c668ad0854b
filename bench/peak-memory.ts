import { readdirSync, readFileSync } from "node:fs"

/** How often the peak is read. The system keeps the peak itself: only what comes after the last reading is missed. */
const everyMs = 5

/** Watches the largest resident set of a process, in bytes, until stopped. Reads `/proc`: Linux alone, else 0. */
export function watchPeakMemory(pid: number, options: { group?: boolean } = {}): { stop(): number } {
  let peak = 0
  const read = () => {
    // Looking through all processes is dear; a group is watched for peers alone, whose launchers do not work themselves.
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

/** The fifth field of `stat`, counted after the name, which stands in brackets and may hold spaces. */
function processGroup(pid: number): number {
  const stat = readProcess(pid, "stat")
  return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[2])
}

/** Empty for a process that has ended, which is no error here. */
function readProcess(pid: number, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "utf8")
  } catch {
    return ""
  }
}
