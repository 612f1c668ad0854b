import { basename } from "node:path"
import { pathToFileURL } from "node:url"
import type { RecordTree } from "../util/process.ts"
import { type ClientHost, createClient, type PluginClient } from "./client.ts"
import { createShell, type Shell } from "./shell.ts"

/** The argument of a plugin function, in OpenCode's format. */
export interface PluginInput {
  client: PluginClient
  project: { id: string; worktree: string; vcs: "git"; time: { created: number } }
  directory: string
  worktree: string
  serverUrl: URL
  $: Shell
  experimental_workspace: { register(type: string): never }
}

/** The engine's data for plugins. Directories are absolute paths. */
export interface PluginInputOptions extends ClientHost {
  directory: string
  worktree: string
  /** Environment for the commands that a plugin runs with `$`. */
  environment: Readonly<Record<string, string | undefined>>
  /** Signal that ends running commands. Aborts when the engine closes. */
  signal: AbortSignal
  /** Records the commands that plugins run. See `ProcessOptions`. */
  record?: RecordTree | undefined
}

/** Creates the input for a plugin function. */
export function createInput(name: string, options: PluginInputOptions): PluginInput {
  const { directory, worktree, environment, signal, record } = options
  return {
    client: createClient(name, options),
    project: { id: basename(worktree), worktree, vcs: "git", time: { created: 0 } },
    directory,
    worktree,
    // No server exists at this URL. The input contains the URL only because some plugins read it.
    serverUrl: new URL(pathToFileURL(worktree).href),
    $: createShell({ cwd: directory, environment, signal, record }),
    experimental_workspace: {
      register(type) {
        throw new Error(`Tackle does not support workspaces, so ${type} cannot be registered.`)
      },
    },
  }
}
