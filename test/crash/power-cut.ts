import { execFileSync } from "node:child_process"
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { killIfThere, type Place, processesIn } from "./place.ts"

/** A part of a file that was written and not yet synced: after a power cut it may be there or not. */
interface Dirty {
  start: number
  end: number
}

/** As much as a disk writes whole. */
const sectorBytes = 512

const traced = ["pwrite64", "fsync", "fdatasync"]

/** Runs a command so that each write and sync of its files is in the log. `-D`: it stays our own child. */
export function underTrace(log: string): string[] {
  return ["strace", "-D", "-f", "-y", "-s", "0", "--seccomp-bpf", "-e", `trace=${traced.join()}`, "-o", log]
}

/** Returns false without `strace`, or if the system does not allow tracing. */
export function canTrace(): boolean {
  try {
    execFileSync("strace", ["-f", "--seccomp-bpf", "-o", "/dev/null", "true"], { stdio: "ignore" })
    return true
  } catch {
    return false
  }
}

/** Nothing runs any more: not the run, nor what it started, nor what watches it. */
export function stopMachine({ directory }: Place): void {
  for (const { pid } of processesIn(directory)) killIfThere(pid)
}

/**
 * Makes of a killed run one whose machine lost its power: of what was not synced each sector is lost by the toss of a
 * coin, `lost` being the part that goes. Only the database: that files of the project are on the disk before a result
 * says so is another matter.
 */
export function loseUnsynced({ data }: Place, log: string, lost: number): void {
  // A run that was killed at once has none.
  const dirty = dirtyParts(existsSync(log) ? readFileSync(log, "utf8") : "")
  for (const name of ["tackle.db", "tackle.db-wal"]) {
    const path = join(data, name)
    if (existsSync(path)) writeFileSync(path, withLosses(readFileSync(path), dirty.get(path) ?? [], lost))
  }
  // It only speeds up access and is created again.
  rmSync(join(data, "tackle.db-shm"), { force: true })
}

function withLosses(bytes: Buffer, parts: readonly Dirty[], lost: number): Buffer {
  for (const { start, end } of parts) {
    for (let sector = start - (start % sectorBytes); sector < end; sector += sectorBytes) {
      const [from, to] = [Math.max(sector, start), Math.min(sector + sectorBytes, end)]
      if (Math.random() < lost) bytes.fill(0, from, Math.min(to, bytes.length))
    }
  }
  return bytes
}

/** By path, what was written after the last sync of the file. */
function dirtyParts(log: string): Map<string, Dirty[]> {
  const dirty = new Map<string, Dirty[]>()
  /** Calls that another thread's line cut in two, by thread. */
  const open = new Map<string, string>()
  for (const line of log.split("\n")) {
    const [, thread = "", text = ""] = /^(\d+) +(.*)$/.exec(line) ?? []
    const write = /^pwrite64\(\d+<(.+?)>, .*, (\d+), (\d+)[ )]/.exec(text)
    if (write) {
      const [, path = "", length, start] = write
      const end = Number(start) + Number(length)
      dirty.set(path, [...(dirty.get(path) ?? []), { start: Number(start), end }])
      continue
    }
    const [, path, rest = ""] = /^f(?:data)?sync\(\d+<(.+?)>(.*)$/.exec(text) ?? []
    if (path !== undefined && rest.includes("unfinished")) open.set(thread, path)
    else if (path !== undefined && /= 0$/.test(rest)) dirty.delete(path)
    else if (/^<\.\.\. f(?:data)?sync resumed>.*= 0$/.test(text)) dirty.delete(open.get(thread) ?? "")
  }
  return dirty
}
