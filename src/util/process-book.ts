import { mkdirSync, rmSync, writeFileSync } from "node:fs"
import { readdir, readFile, rm } from "node:fs/promises"
import { join } from "node:path"
import * as z from "zod"
import { systemCode } from "./errors.ts"
import { identifyProcess, isProcessRunning } from "./process-identity.ts"
import { killOrphans, markName, type TreeIdentity, type TreeIntent } from "./process-tree.ts"

/** What runs for one process of ours, in files, so that a later one can end it where this one was killed. */
export interface ProcessBook {
  /**
   * Writes a tree down, or that one will be started, with the session it works for. The returned function strikes it out;
   * it may be called again.
   */
  add(tree: TreeIdentity | TreeIntent, sessionID?: string): () => void
  /** True while a process of ours that runs has a tree of the session's. */
  isAtWork(sessionID: string): Promise<boolean>
  /** Strikes out all that was added. */
  clear(): void
  /** Ends the trees of processes of ours that are gone, and strikes them out. Those of running ones are left alone. */
  endOrphans(): Promise<void>
}

// An empty or common line would be found in the environment of strangers.
const markSchema = z.lazy(() => z.string().startsWith(`${markName}=`))

const entrySchema = z.lazy(() =>
  z.object({
    /** The process of ours that started the tree. */
    owner: z.object({ pid: z.int(), startTime: z.number().optional(), bootID: z.string().optional() }),
    tree: z.union([
      z.object({ group: z.int().min(2), mark: markSchema, startTime: z.number(), bootID: z.string() }),
      z.object({ group: z.undefined().optional(), mark: markSchema, bootID: z.string() }),
    ]),
    sessionID: z.string().optional(),
  }),
)
type Entry = z.infer<typeof entrySchema>

/**
 * A book in the directory, which is made with the first entry: one file for the intent and one for the tree, since a file
 * that is written over may be found half written. A file that cannot be written or read
 * is told to `onFault` and stops nothing.
 */
export function createProcessBook(
  directory: string,
  onFault: (message: string, error: unknown) => void,
): ProcessBook {
  const files = new Set<string>()

  function strike(file: string): void {
    if (!files.delete(file)) return
    try {
      rmSync(file, { force: true })
    } catch (error) {
      onFault("a command that ended could not be struck out", error)
    }
  }

  return {
    add(tree, sessionID) {
      const mark = tree.mark.slice(markName.length + 1)
      const file = join(directory, `${process.pid}-${mark}-${tree.group ?? "intent"}.json`)
      const session = sessionID === undefined ? {} : { sessionID }
      const entry: Entry = { owner: identifyProcess(), tree, ...session }
      try {
        mkdirSync(directory, { recursive: true, mode: 0o700 })
        writeFileSync(file, JSON.stringify(entry), { mode: 0o600 })
        files.add(file)
      } catch (error) {
        onFault("a command could not be written down, so nobody ends it should this process be killed", error)
      }
      return () => strike(file)
    },
    clear() {
      for (const file of files) strike(file)
    },
    async isAtWork(sessionID) {
      const names = await namesIn(directory)
      const entries = await Promise.all(names.map((name) => readEntry(join(directory, name))))
      return entries.some((entry) => entry?.sessionID === sessionID && isProcessRunning(entry.owner))
    },
    async endOrphans() {
      const names = await namesIn(directory)
      await Promise.all(
        names.map((name) =>
          endOrphan(join(directory, name)).catch((error: unknown) =>
            onFault("what a killed run left could not be ended", error),
          ),
        ),
      )
    },
  }
}

async function namesIn(directory: string): Promise<string[]> {
  try {
    return (await readdir(directory)).filter((name) => name.endsWith(".json"))
  } catch (error) {
    if (systemCode(error) === "ENOENT") return []
    throw error
  }
}

async function endOrphan(file: string): Promise<void> {
  const entry = await readEntry(file)
  if (entry && isProcessRunning(entry.owner)) return
  if (entry) await killOrphans(entry.tree)
  await rm(file, { force: true })
}

/** Undefined: gone by now, or half written by a process that was killed. */
async function readEntry(file: string): Promise<Entry | undefined> {
  try {
    return entrySchema.parse(JSON.parse(await readFile(file, "utf8")))
  } catch (error) {
    if (systemCode(error) === "ENOENT" || error instanceof SyntaxError || error instanceof z.ZodError)
      return undefined
    throw error
  }
}
