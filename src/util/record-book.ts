import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { rm } from "node:fs/promises"
import { basename, dirname, join } from "node:path"
import * as z from "zod"
import { systemCode } from "./errors.ts"
import { identifyProcess, isProcessRunning } from "./process-identity.ts"

/** What a process of ours has under way, in files, so that a later one can clear it away where this one was killed. */
export interface RecordBook<T extends object> {
  /**
   * Writes a record under a name that no other has, for as long as this process runs. The returned function strikes it
   * out; it may be called again.
   */
  add(name: string, record: T): () => void
  /**
   * What processes of ours have written, and whether they still run. At once: nothing of this process comes between the
   * look and what follows from it.
   */
  entries(): RecordEntry<T>[]
  /** Strikes out all that was added. */
  clear(): void
  /** Clears away what processes of ours that are gone have written, and strikes it out where that did not fail. */
  endOrphans(end: (record: T) => Promise<void>): Promise<void>
}

/** A record that was found. */
export interface RecordEntry<T> {
  /** True while the process runs that wrote it. */
  isAlive: boolean
  record: T
}

/** Where the records lie, and what they look like. */
export interface RecordBookOptions<T> {
  /** Is made with the first record. */
  directory: string
  schema: z.ZodType<T>
  /** Hears of a file that cannot be written, read or removed, and of an `end` that failed. Neither stops anything. */
  onProblem(what: "write" | "strike" | "end", error: unknown): void
}

const ownedSchema = z.lazy(() =>
  z.object({
    owner: z.object({ pid: z.int(), startTime: z.number().optional(), bootID: z.string().optional() }),
  }),
)

/** One file for each record: one that is written over may be found half written. */
export function createRecordBook<T extends object>(options: RecordBookOptions<T>): RecordBook<T> {
  const { directory, schema, onProblem } = options
  const files = new Set<string>()

  function strike(file: string): void {
    if (!files.delete(file)) return
    try {
      rmSync(file, { force: true })
    } catch (error) {
      onProblem("strike", error)
    }
  }

  /** Undefined: gone by now, or half written by a process that was killed. */
  function read(file: string): RecordEntry<T> | undefined {
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
    // What is not whole may be about to become it.
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
      return () => strike(file)
    },
    clear() {
      for (const file of files) strike(file)
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

/** The number of the process that wrote the record, by its name. */
function writerOf(file: string): number {
  return Number.parseInt(basename(file), 10) || noProcess
}

/** A number that the systems give to none. */
const noProcess = 2 ** 31 - 1

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
    if (systemCode(error) === "ENOENT") return []
    throw error
  }
}
