import { existsSync, realpathSync, statSync } from "node:fs"
import { resolve } from "node:path"
import type { TackleOptions } from "../../engine/options.ts"
import type { Tackle } from "../../engine/tackle.ts"
import type { Store } from "../../store/store.ts"
import type { Secret } from "../../tool/secrets.ts"
import { UsageError } from "../../util/errors.ts"
import { offline } from "../run/choose-model.ts"
import { openTackle, reportProblem } from "./engine.ts"
import { openWorkspace, type Workspace, type WorkspaceFlags } from "./workspace.ts"

/** Flags for a command that works in many directories. */
export interface DirectoriesFlags extends Omit<WorkspaceFlags, "trust"> {
  /** Directories with the projects. Default: the directory from `--dir`, or the current directory. */
  root?: string[]
  /** URL of a PostgreSQL database. */
  database?: string
}

/** The directories and the store for a command that works in many directories. */
export interface Directories {
  /** The workspace in the directory from `--dir`, or in the current directory. */
  workspace: Workspace
  /** Directories that contain the projects, with symbolic links resolved. */
  roots: string[]
  /** URL of the PostgreSQL database, if one is used. */
  database: string | undefined
  /** Store for all sessions. It hides the workspace's secrets. */
  store: Store
  /** Opens an engine with the config and the permissions of a directory. The caller answers the engine's requests. */
  openEngine(directory: string): Promise<Tackle>
  onProblem(message: string, error: unknown): void
  /** Closes the store. */
  close(): Promise<void>
}

/**
 * Opens the store for a command that works in many directories. `secrets` returns values that are hidden in the output
 * of every engine. `options` returns options for every engine.
 */
export async function openDirectories(
  flags: DirectoriesFlags,
  { secrets, options }: { secrets(workspace: Workspace): Secret[]; options(): Partial<TackleOptions> },
): Promise<Directories> {
  const { openDatabase } = await import("../../engine/open-storage.ts")
  const { maskStore } = await import("../../session/masked-store.ts")
  const { dataPaths } = await import("../../engine/data-directory.ts")
  const { databaseSecrets } = await import("../../engine/secrets.ts")
  // Copied, because an engine removes its providers' keys from the environment of this process.
  const environment = { ...process.env }
  const workspace = await openWorkspace(flags)
  const roots = flags.root?.map(rootOf) ?? [workspace.directory]
  const hidden = secrets(workspace)
  const database = flags.database ?? environment.TACKLE_DATABASE
  const store = await openDatabase({ database, file: dataPaths(workspace.dataDirectory).database })
  if (database !== undefined) workspace.mask.add(databaseSecrets(database))
  return {
    workspace,
    roots,
    database,
    // Stored records may contain secrets that were configured only after the records were written.
    store: maskStore(store, workspace.mask),
    async openEngine(directory) {
      const own = await openWorkspace({ ...flags, dir: directory }, environment)
      own.mask.add(hidden)
      if (database !== undefined) own.mask.add(databaseSecrets(database))
      const { model = offline } = own.config.config
      return openTackle(own, {}, { model, store, approvals: true, questions: true, ...options() })
    },
    onProblem: (message, error) => void reportProblem(workspace, message, error),
    close: () => store.close(),
  }
}

function rootOf(given: string): string {
  const path = resolve(given)
  if (!existsSync(path)) throw new UsageError(`The --root directory ${path} does not exist.`)
  if (!statSync(path).isDirectory()) throw new UsageError(`The --root path ${path} is not a directory.`)
  return realpathSync(path)
}
