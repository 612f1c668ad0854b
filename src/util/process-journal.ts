import * as z from "zod"
import { createJournal } from "./journal.ts"
import { killOrphans, markName, type TreeIdentity, type TreeIntent } from "./process-tree.ts"

/** Records running process trees in files, so that a later process can end the trees if this process is killed. */
export interface ProcessJournal {
  /**
   * Records a tree, or the intent to start one, with its session. The returned function removes the record and is
   * idempotent.
   */
  add(tree: TreeIdentity | TreeIntent, sessionID?: string): () => void
  /**
   * Resolves to true if the journal contains a process tree of the session, and the Tackle process that recorded the
   * tree is running.
   */
  isAtWork(sessionID: string): Promise<boolean>
  /** Removes all records that this process wrote. */
  clear(): void
  /** Ends the process trees of Tackle processes that are no longer running, and removes their records. */
  endOrphans(): Promise<void>
}

// Requires the variable's name in the mark, because an empty or common line would match the environment of unrelated
// processes.
const markSchema = z.lazy(() => z.string().startsWith(`${markName}=`))

const entrySchema = z.lazy(() =>
  z.object({
    tree: z.union([
      z.object({ group: z.int().min(2), mark: markSchema, startTime: z.number(), bootID: z.string() }),
      z.object({ group: z.undefined().optional(), mark: markSchema, bootID: z.string() }),
    ]),
    sessionID: z.string().optional(),
  }),
)

const problems = {
  write: "could not record a program; if this process is killed, the program may keep running",
  remove: "could not remove the record of a program that ended",
  end: "could not end a program that a killed process left running",
}

/**
 * Creates a journal with one record per intent and one per tree. Passes the first error of each kind to `onProblem` and
 * continues.
 */
export function createProcessJournal(
  directory: string,
  onProblem: (message: string, error: unknown) => void,
): ProcessJournal {
  // Reports only the first error of each kind, because an unwritable directory would otherwise cause the same message
  // for every program.
  const reported = new Set<string>()
  const journal = createJournal<z.infer<typeof entrySchema>>({
    directory,
    schema: entrySchema,
    onProblem(what, error) {
      if (!reported.has(what)) onProblem(problems[what], error)
      reported.add(what)
    },
  })
  return {
    add(tree, sessionID) {
      const mark = tree.mark.slice(markName.length + 1)
      return journal.add(`${mark}-${tree.group ?? "intent"}`, { tree, sessionID })
    },
    clear: journal.clear,
    isAtWork: async (sessionID) =>
      journal.entries().some(({ isAlive, record }) => isAlive && record.sessionID === sessionID),
    endOrphans: () =>
      journal.endOrphans(async ({ tree }) => {
        await killOrphans(tree)
      }),
  }
}
