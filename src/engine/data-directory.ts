import { join } from "node:path"
import { homeDirectory, isInside } from "../util/paths.ts"

/**
 * Returns `$TACKLE_DATA_DIR`, or `$XDG_DATA_HOME/tackle` if that variable is not set, or `~/.local/share/tackle` if
 * neither variable is set.
 */
export function defaultDataDirectory(environment: Readonly<Record<string, string | undefined>>): string {
  const { TACKLE_DATA_DIR: own, XDG_DATA_HOME: shared } = environment
  return own || join(shared || join(homeDirectory(), ".local/share"), "tackle")
}

/** Paths of the files and directories in the data directory. */
export interface DataPaths {
  /** SQLite database for sessions. */
  database: string
  /** Keys and tokens for providers. */
  auth: string
  /** Tokens for MCP servers. */
  mcpTokens: string
  /** Fingerprints of MCP tool definitions, recorded when each definition was first seen. */
  mcpFingerprints: string
  /** Projects and files that the user trusts. */
  trust: string
  /** Directory of full tool outputs, by session. */
  outputs: string
  /** Directory of file contents, with which undo and redo restore files. */
  snapshots: string
  /** Directory of plans, by session. */
  plans: string
  /** Directory of worktrees that were rebuilt for sessions from other machines, by session. */
  workspaces: string
  /** Directory of private copies of trusted programs. */
  programs: string
  /** Directory of locks for the files that a process is changing. */
  locks: string
  /** Directory with one record per running process tree. */
  processes: string
  /** Directory with one record per temporary file that exists next to a file during a change. */
  temporaries: string
  /** Directory with one record per empty directory that a sandboxed command needs in a project. */
  placeholders: string
  /** Directory of files that commands created although a rule denies them, by command. */
  removed: string
  logs: string
  /** Directory of the compiled code of the `tackle` command: see `bin/tackle`. */
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
    workspaces: join(directory, "workspace"),
    programs: join(directory, "external-tool"),
    locks: join(directory, "locks"),
    processes: join(directory, "processes"),
    temporaries: join(directory, "temporary"),
    placeholders: join(directory, "placeholders"),
    removed: join(directory, "removed"),
    logs: join(directory, "log"),
    compiled: join(directory, "compiled"),
  }
}

/** Returns the directories in the data directory that sandboxed commands may read: full outputs, plans and programs. */
export function readableDataPaths({ outputs, plans, programs }: DataPaths): string[] {
  return [outputs, plans, programs]
}

/**
 * Returns the paths that can be changed only with permission from the user, because they determine trust or contain
 * code that runs. Returns the whole data directory. If the project is inside the data directory, returns the entries
 * that do not contain the project.
 */
export function guardedDataPaths(directory: string, worktree: string): string[] {
  if (!isInside(worktree, directory)) return [directory]
  return Object.values(dataPaths(directory)).filter((path) => !isInside(worktree, path))
}
