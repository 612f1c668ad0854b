import {
  type BoundsRequest,
  commandBounds,
  createTreeScanner,
  type TreeScanner,
} from "../permission/command-bounds.ts"
import type { Scope } from "../permission/request.ts"
import { knownPrograms } from "../permission/shell/known-programs.ts"
import { type Sandbox, SandboxError } from "../sandbox/sandbox.ts"
import type { SandboxCapability } from "../tool/context.ts"

/** What holds for the commands of all sessions. */
export interface SandboxSettings
  extends Pick<BoundsRequest, "home" | "temporary" | "guarded" | "configDirectories" | "secret" | "shown"> {
  sandbox: Sandbox
}

/**
 * The sandbox as the commands of one agent and session meet it: the bounds are made anew for each command, from the rules
 * as they are then. `required`: without a sandbox the command is refused, whatever the mode.
 */
export function createSandboxFor(
  settings: SandboxSettings,
): (scope: Scope, options: { required: boolean }) => SandboxCapability {
  const { sandbox, ...locations } = settings
  const scanners = new Map<string, TreeScanner>()

  function scannerOf(worktree: string): TreeScanner {
    const scanner = scanners.get(worktree) ?? createTreeScanner()
    scanners.set(worktree, scanner)
    return scanner
  }

  return (scope, { required }) => {
    const isRequired = required || sandbox.mode === "require"
    return {
      active: async () => (await sandbox.state()).works,
      async confine({ text, ...command }) {
        const state = await sandbox.state()
        if (!state.works) {
          if (isRequired) throw new SandboxError(state.reason)
          return undefined
        }
        const bounds = commandBounds({
          ...locations,
          policy: scope.policy(),
          worktree: scope.worktree,
          programs: await knownPrograms(text),
          scanner: scannerOf(scope.worktree),
        })
        return sandbox.wrap(command, bounds)
      },
    }
  }
}
