import { join } from "node:path"
import { homeDirectory, isInside } from "../util/paths.ts"

/** `$TACKLE_DATA_DIR`, else `$XDG_DATA_HOME/tackle`, else `~/.local/share/tackle`. */
export function defaultDataDirectory(environment: Readonly<Record<string, string | undefined>>): string {
  const { TACKLE_DATA_DIR: own, XDG_DATA_HOME: shared } = environment
  return own || join(shared || join(homeDirectory(), ".local/share"), "tackle")
}

/** Where in the data directory what lies. */
export interface DataPaths {
  /** Sessions, and all that is in them. */
  database: string
  /** Keys and tokens of providers. */
  auth: string
  /** Tokens of MCP servers. */
  mcpTokens: string
  /** What the tools of MCP servers were when they were first seen. */
  mcpFingerprints: string
  /** What a person trusts of projects. */
  trust: string
  /** Directories: full outputs, by session. */
  outputs: string
  /** What files were before a turn changed them. */
  snapshots: string
  /** Plans, by session. */
  plans: string
  /** Private copies of trusted programs. */
  programs: string
  /** A note for each tree of processes that runs. */
  processes: string
  /** A note for each file that stands beside another while that is written. */
  temporaries: string
  /** A note for each empty directory that stands in a project while a command runs. */
  placeholders: string
  logs: string
  /** Compiled code of the command: see `bin/tackle`. */
  compiled: string
}

/** The places in the directory. Makes nothing. */
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

/** All that commands in a sandbox may read of the directory: what the model is told to look at, and programs to run. */
export function readableDataPaths({ outputs, plans, programs }: DataPaths): string[] {
  return [outputs, plans, programs]
}

/**
 * What a change asks for, whatever covers it: it says what is trusted, and some of it is run. All of the directory, but
 * where the project lies in it, which can be worked on.
 */
export function guardedDataPaths(directory: string, worktree: string): string[] {
  return isInside(worktree, directory) ? Object.values(dataPaths(directory)) : [directory]
}
