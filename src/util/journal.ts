import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { rm } from "node:fs/promises"
import { basename, dirname, join } from "node:path"
import * as z from "zod"
import { systemCode } from "./errors.ts"
import { identifyProcess, isProcessRunning } from "./process-table.ts"

/** Records a process's work in files, so that a later process can clean up if this process is killed. */
export interface Journal<T extends object> {
  /**
   * Writes a record. `name` must be unique within this process. The returned function removes the record and is
   * idempotent.
   */
  add(name: string, record: T): () => void
  /** Returns the records of all processes. Synchronous, so that a caller can act on the result without a race. */
  entries(): JournalEntry<T>[]
  /** Removes all records that this process wrote. */
  clear(): void
  /**
   * Calls `end` for each record of a process that is no longer running, and removes the record if `end` succeeds. Also
   * removes incomplete records that such processes left.
   */
  endOrphans(end: (record: T) => Promise<void>): Promise<void>
}

/** A record found in the journal. */
export interface JournalEntry<T> {
  /** True if the process that wrote the record was still running when the record was read. */
  isAlive: boolean
  record: T
}

/** Directory and format of the records. */
export interface JournalOptions<T> {
  /** Directory for the records. It is created when the first record is written. */
  directory: string
  schema: z.ZodType<T>
  /** Receives errors from writing and removing records, and from `end`. The journal continues after these errors. */
  onProblem(what: "write" | "remove" | "end", error: unknown): void
}

const ownedSchema = z.lazy(() =>
  z.object({
    owner: z.object({ pid: z.int(), startTime: z.number().optional(), bootID: z.string().optional() }),
  }),
)

/** Creates a journal. Each record has its own file, because readers could see an incomplete write to a shared file. */
export function createJournal<T extends object>(options: JournalOptions<T>): Journal<T> {
  const { directory, schema, onProblem } = options
  const files = new Set<string>()

  function remove(file: string): void {
    if (!files.delete(file)) return
    try {
      rmSync(file, { force: true })
    } catch (error) {
      onProblem("remove", error)
    }
  }

  /** Returns undefined if the file is missing, or incomplete because the process that wrote it was killed. */
  function read(file: string): JournalEntry<T> | undefined {
    try {
      const value: unknown = JSON.parse(readFileSync(file, "utf8"))
      const { owner } = ownedSchema.parse(value)
      return { isAlive: isProcessRunning(owner), record: schema.parse(value) }
    } catch (error) {
      if (systemCode(error) === "ENOENT" || error instanceof SyntaxError || error instanceof z.ZodError)
        return undefined
      throw error
    }
  }

  async function endOrphan(file: string, end: (record: T) => Promise<void>): Promise<void> {
    const entry = read(file)
    // A running process may still be writing an incomplete record.
    if (entry?.isAlive ?? isProcessRunning({ pid: writerOf(file) })) return
    if (entry) await end(entry.record)
    await rm(file, { force: true })
  }

  return {
    add(name, record) {
      const file = join(directory, `${process.pid}-${name}.json`)
      try {
        write(file, JSON.stringify({ owner: identifyProcess(), ...record }))
        files.add(file)
      } catch (error) {
        onProblem("write", error)
      }
      return () => remove(file)
    },
    clear() {
      for (const file of files) remove(file)
    },
    entries: () => filesIn(directory).flatMap((file) => read(file) ?? []),
    async endOrphans(end) {
      const left = filesIn(directory)
      await Promise.all(
        left.map((file) => endOrphan(file, end).catch((error: unknown) => onProblem("end", error))),
      )
    },
  }
}

/** Returns the pid in the file name. */
function writerOf(file: string): number {
  return Number.parseInt(basename(file), 10) || unusedPid
}

/** A pid that no system assigns. */
const unusedPid = 2 ** 31 - 1

function write(file: string, text: string): void {
  try {
    writeFileSync(file, text, { mode: 0o600 })
  } catch (error) {
    if (systemCode(error) !== "ENOENT") throw error
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
    writeFileSync(file, text, { mode: 0o600 })
  }
}

function filesIn(directory: string): string[] {
  try {
    const names = readdirSync(directory)
    return names.flatMap((name) => (name.endsWith(".json") ? [join(directory, name)] : []))
  } catch (error) {
    if (["ENOENT", "ENOTDIR"].includes(systemCode(error) ?? "")) return []
    throw error
  }
}
