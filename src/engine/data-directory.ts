import { join } from "node:path"
import { homeDirectory, isInside } from "../util/paths.ts"

/** Returns `$TACKLE_DATA_DIR`, else `$XDG_DATA_HOME/tackle`, else `~/.local/share/tackle`. */
export function defaultDataDirectory(environment: Readonly<Record<string, string | undefined>>): string {
  const { TACKLE_DATA_DIR: own, XDG_DATA_HOME: shared } = environment
  return own || join(shared || join(homeDirectory(), ".local/share"), "tackle")
}

/** Files and directories in the data directory. */
export interface DataPaths {
  /** The database of sessions. */
  database: string
  /** Keys and tokens of providers. */
  auth: string
  /** Tokens of MCP servers. */
  mcpTokens: string
  /** The definitions of MCP tools when they were first seen. */
  mcpFingerprints: string
  /** The projects and files that the user trusts. */
  trust: string
  /** Directory of full outputs, by session. */
  outputs: string
  /** Contents of files from before a turn changed them. */
  snapshots: string
  /** Plans, by session. */
  plans: string
  /** Private copies of trusted programs. */
  programs: string
  /** One note per running process tree. */
  processes: string
  /** One note per temporary file beside a file that is being written. */
  temporaries: string
  /** One note per empty directory that a sandboxed command needs in a project. */
  placeholders: string
  logs: string
  /** Compiled code of the command: see `bin/tackle`. */
  compiled: string
}

/** Returns the paths in the data directory. Creates nothing. */
export function dataPaths(directory: string): DataPaths {
  return {
    database: join(directory, "tackle.db"),
    auth: join(directory, "auth.json"),
    mcpTokens: join(directory, "mcp-auth.json"),
    mcpFingerprints: join(directory, "mcp-tools.json"),
    trust: join(directory, "trust.json"),
    outputs: join(directory, "truncate"),
    snapshots: join(directory, "snapshot"),
    plans: join(directory, "plan"),
    programs: join(directory, "external-tool"),
    processes: join(directory, "processes"),
    temporaries: join(directory, "temporary"),
    placeholders: join(directory, "placeholders"),
    logs: join(directory, "log"),
    compiled: join(directory, "compiled"),
  }
}

/** Returns the directories that sandboxed commands may read: full outputs, plans and programs. */
export function readableDataPaths({ outputs, plans, programs }: DataPaths): string[] {
  return [outputs, plans, programs]
}

/**
 * Returns the paths whose change always asks: they determine trust, and some of them are executed. The whole data
 * directory, unless the project is inside it.
 */
export function guardedDataPaths(directory: string, worktree: string): string[] {
  return isInside(worktree, directory) ? Object.values(dataPaths(directory)) : [directory]
}
