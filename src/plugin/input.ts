import { basename } from "node:path"
import { pathToFileURL } from "node:url"
import type { RecordTree } from "../util/process.ts"
import { type ClientHost, createClient, type PluginClient } from "./client.ts"
import { createShell, type Shell } from "./shell.ts"

/** What a plugin is called with: the shape that OpenCode's plugins take. */
export interface PluginInput {
  client: PluginClient
  project: { id: string; worktree: string; vcs: "git"; time: { created: number } }
  directory: string
  worktree: string
  serverUrl: URL
  $: Shell
  experimental_workspace: { register(type: string): never }
}

/** What plugins are given of the engine. Directories absolute. */
export interface PluginSurroundings extends ClientHost {
  directory: string
  worktree: string
  /** The variables of the commands that a plugin's `$` runs. */
  environment: Readonly<Record<string, string | undefined>>
  /** Fires when the engine has closed: commands that still run are ended. */
  signal: AbortSignal
  /** Writes commands down: see `ProcessOptions`. */
  record?: RecordTree | undefined
}

/** The input of the plugin of that name. */
export function createInput(name: string, surroundings: PluginSurroundings): PluginInput {
  const { directory, worktree, environment, signal, record } = surroundings
  return {
    client: createClient(name, surroundings),
    project: { id: basename(worktree), worktree, vcs: "git", time: { created: 0 } },
    directory,
    worktree,
    // There is no server in this process: an address that nothing answers at, so that reading it does no harm.
    serverUrl: new URL(pathToFileURL(worktree).href),
    $: createShell({ cwd: directory, environment, signal, record }),
    experimental_workspace: {
      register(type) {
        throw new Error(`Tackle has no workspaces: ${type} cannot be registered.`)
      },
    },
  }
}
