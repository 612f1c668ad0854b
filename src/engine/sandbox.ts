import { tmpdir } from "node:os"
import { join } from "node:path"
import type { Agent } from "../agent/agent.ts"
import { commandBounds, createTreeScanner, type TreeScanner } from "../permission/command-bounds.ts"
import { watchDeniedPaths } from "../permission/created-paths.ts"
import type { Scope, ScopeSandbox } from "../permission/request.ts"
import { knownPrograms } from "../permission/shell/read-only-proof.ts"
import type { PlaceholderJournal } from "../sandbox/placeholders.ts"
import { openSandbox, SandboxError, type SandboxState } from "../sandbox/sandbox.ts"
import type { SandboxCapability } from "../tool/context.ts"
import { errorMessage } from "../util/errors.ts"
import { newId } from "../util/id.ts"
import { homeDirectory } from "../util/paths.ts"
import { firstPaths } from "../util/words.ts"
import { readableDataPaths } from "./data-directory.ts"
import type { EngineLocation, TackleOptions } from "./options.ts"

/** The sandbox for agents' commands. */
export interface CommandSandbox {
  /** True if the sandbox is enabled and its programs are installed. It may still not work: see `state`. */
  readonly present: boolean
  /** Returns the state of the sandbox. The first call tests the sandbox with a real command. */
  state(): Promise<SandboxState>
  /**
   * Returns the sandbox for an agent. The rules that apply when a command starts determine its bounds. If no sandbox is
   * present, the policy of an agent that requires one limits its commands: see `Agent.sandbox`.
   */
  of(agent: Agent, scope: Scope): SandboxCapability
  /** The sandbox that the permission engine takes into account when it decides about commands. */
  readonly scope: ScopeSandbox
  close(): Promise<void>
}

/**
 * Opens the sandbox that the options describe. Starts nothing before the first command or the first call to `state`.
 */
export function openCommandSandbox(
  {
    sandbox: mode = "auto",
    sandboxAllow,
    passEnvironment = [],
    configFiles = [],
    configDirectories = [],
  }: TackleOptions,
  { environment, worktree, dataDirectory, data }: EngineLocation,
  placeholders: PlaceholderJournal,
  onProblem: (message: string, error: unknown) => void,
): CommandSandbox {
  const sandbox = openSandbox({
    mode,
    platform: process.platform,
    architecture: process.arch,
    searchPath: environment.PATH ?? "",
    worktree,
    passEnvironment,
    placeholders,
  })
  const shared = {
    home: homeDirectory(),
    temporary: [...new Set(["/tmp", environment.TMPDIR || tmpdir()])],
    guarded: configFiles,
    configDirectories,
    secret: [dataDirectory],
    shown: readableDataPaths(data),
  }
  const scanners = new Map<string, TreeScanner>()

  function scannerOf(root: string): TreeScanner {
    const scanner = scanners.get(root) ?? createTreeScanner()
    scanners.set(root, scanner)
    return scanner
  }

  let reported = false
  async function works(): Promise<boolean> {
    const state = await sandbox.state()
    if (!state.works && sandboxAllow === "auto" && !reported) {
      reported = true
      onProblem(
        "commands are not allowed automatically, because no sandbox works here",
        new Error(state.reason),
      )
    }
    return state.works
  }

  function describeRemoved(remove: () => string[], to: string): string | undefined {
    try {
      const removed = remove()
      if (removed.length === 0) return undefined
      return `moved to ${to}, because a rule denies edits: ${firstPaths(removed)}`
    } catch (error) {
      onProblem("files that a command created although a rule denies them could not be removed", error)
      return `a rule denies edits of files that this command created, but they could not be removed (${errorMessage(error)})`
    }
  }

  return {
    present: sandbox.present,
    state: () => sandbox.state(),
    scope: { works, allows: sandboxAllow === "auto" },
    of(agent, scope) {
      const required = mode === "require" || (agent.sandbox === "require" && sandbox.present)
      return {
        active: async () => (await sandbox.state()).works,
        async confine({ text, ...command }) {
          const state = await sandbox.state()
          if (!state.works) {
            if (required) throw new SandboxError(state.reason)
            return undefined
          }
          const programs = await knownPrograms(text, command)
          const { worktree } = scope
          const rules = { ...shared, policy: scope.policy(), worktree, scanner: scannerOf(worktree) }
          const removed = join(data.removed, newId("rem"))
          const removeCreated = watchDeniedPaths(rules, removed)
          const confined = await sandbox.wrap(command, commandBounds({ ...rules, programs }))
          let note: { text: string | undefined } | undefined
          return {
            ...confined,
            ended() {
              confined.ended()
              note ??= { text: describeRemoved(removeCreated, removed) }
              return note.text
            },
          }
        },
      }
    },
    close: () => sandbox.close(),
  }
}
