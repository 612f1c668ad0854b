import { execFileSync } from "node:child_process"
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { killIfThere, type Place, processesIn } from "./place.ts"

/** A part of a file that was written but not synced. A power loss can destroy it. */
interface Dirty {
  start: number
  end: number
}

/** Number of bytes that a disk writes completely or not at all. */
const sectorBytes = 512

const traced = ["pwrite64", "fsync", "fdatasync"]

/** Returns a program that logs each write and sync of a command. `-D` keeps the command a child of this process. */
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

/** Kills all processes in the project: the run, the processes that it started, and the tracer. */
export function stopMachine({ directory }: Place): void {
  for (const { pid } of processesIn(directory)) killIfThere(pid)
}

/**
 * Simulates a power loss after a run was killed: clears random unsynced sectors of the database. `lost` is the
 * probability for each sector. Files of the project are not changed.
 */
export function loseUnsynced({ data }: Place, log: string, lost: number): void {
  // A run that was killed immediately has no log.
  const dirty = dirtyParts(existsSync(log) ? readFileSync(log, "utf8") : "")
  for (const name of ["tackle.db", "tackle.db-wal"]) {
    const path = join(data, name)
    if (existsSync(path)) writeFileSync(path, withLosses(readFileSync(path), dirty.get(path) ?? [], lost))
  }
  // This file only speeds up access and is created again.
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

/** Returns the parts of each file that were written after its last sync, by path. */
function dirtyParts(log: string): Map<string, Dirty[]> {
  const dirty = new Map<string, Dirty[]>()
  /** Paths of the calls whose log line was split by another thread, by thread. */
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
