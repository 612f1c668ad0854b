import { readdirSync, readFileSync } from "node:fs"
import { cpus } from "node:os"

/** CPU time in seconds that a cluster's processes used. Commands that have ended count as commands. */
export interface ProcessorTime {
  workers: number
  /** Commands that the model ran, including their start. */
  commands: number
  servers: number
  database: number
  /** The model server and the clients. */
  bench: number
}

/** Processor time that a measurement used. */
export interface ProcessorUse extends ProcessorTime {
  /** Share of all cores that any program used, from 0 to 1. */
  busy: number
  /** Share of all cores that the measured processes used. */
  own: number
}

/** Clock ticks per second on Linux. */
const ticks = 100

/** Starts measuring. Returns a function that returns the processor time used since the start. */
export function watchProcessor(): () => ProcessorUse {
  const [before, machine, started] = [readTimes(), readBusy(), performance.now()]
  return () => {
    const after = readTimes()
    const seconds = (performance.now() - started) / 1000
    const available = seconds * cpus().length
    const used = { ...after }
    for (const part of Object.keys(used) as (keyof ProcessorTime)[]) used[part] -= before[part]
    const total = Object.values(used).reduce((sum, each) => sum + each, 0)
    return { ...used, busy: (readBusy() - machine) / available, own: total / available }
  }
}

/** Returns the CPU time in seconds that all programs on the machine have used. */
function readBusy(): number {
  const [line = ""] = readFileSync("/proc/stat", "utf8").split("\n")
  const [user = 0, nice = 0, system = 0, , , interrupts = 0, soft = 0] = line
    .split(/\s+/)
    .slice(1)
    .map(Number)
  return (user + nice + system + interrupts + soft) / ticks
}

function readTimes(): ProcessorTime {
  const times = { workers: 0, commands: 0, servers: 0, database: 0, bench: 0 }
  const all = readProcesses()
  const parents = new Map(all.map(({ pid, parent }) => [pid, parent]))
  const isOwn = (pid: number | undefined): boolean =>
    pid !== undefined && (pid === process.pid || isOwn(parents.get(pid)))
  for (const { pid, command, own, ended } of all) {
    if (!isOwn(pid)) continue
    if (pid === process.pid) times.bench += own
    // The postmaster's time for ended processes includes the processes of closed connections.
    else if (/postgres/.test(command)) times.database += own + ended
    else if (/\0worker\0/.test(command)) {
      times.workers += own
      times.commands += ended
    } else if (/\0serve\0/.test(command)) times.servers += own
  }
  return times
}

function readProcesses() {
  return readdirSync("/proc").flatMap((name) => {
    if (!/^\d+$/.test(name)) return []
    try {
      const text = readFileSync(`/proc/${name}/stat`, "utf8")
      // The name of the program, in parentheses, may contain spaces.
      const fields = text
        .slice(text.lastIndexOf(")") + 2)
        .split(" ")
        .map(Number)
      const [user = 0, system = 0, endedUser = 0, endedSystem = 0] = fields.slice(11, 15)
      const command = readFileSync(`/proc/${name}/cmdline`, "utf8")
      const [own, ended] = [(user + system) / ticks, (endedUser + endedSystem) / ticks]
      return [{ pid: Number(name), parent: fields[1], command, own, ended }]
    } catch {
      // The process has ended.
      return []
    }
  })
}
