import { hostname } from "node:os"
import { resolve } from "node:path"
import { createTemporaryFileJournal } from "../files/temporary-files.ts"
import type { Session } from "../schema/session.ts"
import type { OpenedWorkspace } from "../session/workspace.ts"
import type { ContentStore } from "../store/content-store.ts"
import type { Store } from "../store/store.ts"
import { newId } from "../util/id.ts"
import { identifyProcess } from "../util/process-table.ts"
import { dataPaths, defaultDataDirectory } from "./data-directory.ts"
import { defaultRetentionLimits } from "./housekeeping.ts"
import { openContents } from "./open-storage.ts"

/** Options for {@link createWorkspaceOpener}. */
export interface WorkspaceOpenerOptions {
  store: Store
  /** Contents of changed files, as for `createTackle`. */
  contents?: string | ContentStore
  /** Default: as for `createTackle`. */
  dataDirectory?: string
  /** Environment variables for git and for S3-compatible storage. Default: the variables of the process. */
  environment?: Readonly<Record<string, string | undefined>>
  /** Name of this machine. Default: the host name. */
  host?: string
  onProblem?(message: string, error: unknown): void
}

/**
 * Opens a session's workspace on this machine. Rebuilds the workspace if the session worked on another machine, or if
 * its directory no longer exists.
 */
export type WorkspaceOpener = (session: Session, signal?: AbortSignal) => Promise<OpenedWorkspace>

/**
 * Creates a function that opens workspaces before an engine is opened for their directory. The function throws a
 * `TackleError` with the code `workspace` if a workspace cannot be rebuilt, and `SessionHeldError` if an engine uses
 * the session. After a rebuild, read the session again, because its directories have changed.
 */
export async function createWorkspaceOpener({
  store,
  contents,
  environment = process.env,
  dataDirectory = defaultDataDirectory(environment),
  host = hostname(),
  onProblem = () => {},
}: WorkspaceOpenerOptions): Promise<WorkspaceOpener> {
  const data = dataPaths(resolve(dataDirectory))
  const opened = await openContents({
    contents,
    store,
    directory: data.snapshots,
    retention: defaultRetentionLimits,
    environment,
  })
  const temporaries = createTemporaryFileJournal(data.temporaries, onProblem)
  // Loaded on demand, because most programs never open a workspace from another machine.
  const { openWorkspace } = await import("../session/workspace.ts")
  const holder = { id: newId("eng"), host, ...identifyProcess() }
  return (session, signal) =>
    openWorkspace(session, {
      store,
      contents: opened,
      directory: data.workspaces,
      holder,
      trackTemporary: temporaries.track,
      environment,
      host,
      signal,
    })
}
