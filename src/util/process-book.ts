import * as z from "zod"
import { killOrphans, markName, type TreeIdentity, type TreeIntent } from "./process-tree.ts"
import { createRecordBook } from "./record-book.ts"

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
    tree: z.union([
      z.object({ group: z.int().min(2), mark: markSchema, startTime: z.number(), bootID: z.string() }),
      z.object({ group: z.undefined().optional(), mark: markSchema, bootID: z.string() }),
    ]),
    sessionID: z.string().optional(),
  }),
)

const faults = {
  write: "a command could not be written down, so nobody ends it should this process be killed",
  strike: "a command that ended could not be struck out",
  end: "what a killed run left could not be ended",
}

/**
 * A book in the directory, with one record for the intent and one for the tree. A file that cannot be written or read is
 * told to `onProblem` and stops nothing.
 */
export function createProcessBook(
  directory: string,
  onProblem: (message: string, error: unknown) => void,
): ProcessBook {
  const book = createRecordBook<z.infer<typeof entrySchema>>({
    directory,
    schema: entrySchema,
    onProblem: (what, error) => onProblem(faults[what], error),
  })
  return {
    add(tree, sessionID) {
      const mark = tree.mark.slice(markName.length + 1)
      const session = sessionID === undefined ? {} : { sessionID }
      return book.add(`${mark}-${tree.group ?? "intent"}`, { tree, ...session })
    },
    clear: book.clear,
    isAtWork: async (sessionID) =>
      book.entries().some(({ isAlive, record }) => isAlive && record.sessionID === sessionID),
    endOrphans: () =>
      book.endOrphans(async ({ tree }) => {
        await killOrphans(tree)
      }),
  }
}
