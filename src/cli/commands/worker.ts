import { once } from "node:events"
import { mkdirSync, realpathSync } from "node:fs"
import type { Command } from "commander"
import { counted } from "../../util/words.ts"
import { interruptible } from "../process/exit.ts"
import { printJson, printLine } from "../process/stdout.ts"
import { type Directories, type DirectoriesFlags, openDirectories } from "../workspace/directories.ts"
import { databaseFlag, formatFlag, jsonFlag, locationFlags, positive } from "./flags.ts"
import { openDispatcher, rootFlag } from "./serve.ts"

/** Defines `tackle worker`. */
export function defineWorker(worker: Command): void {
  locationFlags(worker)
    .addOption(databaseFlag())
    .option("--concurrency <n>", "maximum number of sessions that run at once", positive, 16)
    .addOption(rootFlag())
    .option("--clone", "for sessions from lost machines, rebuild worktrees from their git remotes")
    .option("--grace <seconds>", "maximum time for runs to finish after a signal", positive, 10)
    .addOption(formatFlag())
    .addOption(jsonFlag())
    .action(runWorker)
}

/** Flags for `tackle worker`. */
interface WorkerFlags extends DirectoriesFlags {
  /** Maximum number of sessions that run at once. */
  concurrency: number
  /** Whether to rebuild worktrees for sessions from lost machines. */
  clone?: boolean
  /** Time in seconds that runs may continue after a signal. */
  grace: number
  format: "text" | "json"
}

/** Runs `tackle worker`, which runs sessions until a signal arrives. A second signal stops the worker immediately. */
async function runWorker(flags: WorkerFlags): Promise<void> {
  await interruptible(async (signal) => {
    const directories = await openDirectories(flags, {
      secrets: () => [],
      options: () => ({ isWorker: true }),
    })
    try {
      const { store, openEngine, onProblem } = directories
      const opener = flags.clone ? await openWorkspaces(directories) : undefined
      const roots = [...directories.roots, ...(opener?.roots ?? [])]
      const dispatcher = await openDispatcher(directories, { maintains: true })
      const { startWorker } = await import("../../scale/worker.ts")
      const { concurrency, format, grace } = flags
      const worker = await startWorker({
        store,
        dispatcher,
        openEngine,
        roots,
        concurrency,
        openWorkspace: opener?.open,
        onProblem,
      })
      if (format === "json") printJson({ pid: process.pid, roots, concurrency })
      else
        printLine(
          `This worker runs up to ${counted(concurrency, "session")} at once in ${roots.join(", ")}. Press Ctrl+C to stop.`,
        )
      if (!signal.aborted) await once(signal, "abort")
      await worker.close(grace * 1000)
    } finally {
      await directories.close()
    }
  })
}

/** Returns the function that rebuilds worktrees, and the directory for them. */
async function openWorkspaces({ workspace, store, onProblem }: Directories) {
  const { createWorkspaceOpener } = await import("../../engine/workspaces.ts")
  const { dataPaths } = await import("../../engine/data-directory.ts")
  const { dataDirectory, environment } = workspace
  const { workspaces } = dataPaths(dataDirectory)
  mkdirSync(workspaces, { recursive: true, mode: 0o700 })
  const contents = environment.TACKLE_CONTENTS
  const open = await createWorkspaceOpener({ store, contents, dataDirectory, environment, onProblem })
  return { open, roots: [realpathSync(workspaces)] }
}
