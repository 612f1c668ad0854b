import { describe, test } from "vitest"
import { openSandbox, type Sandbox, type SandboxMode } from "../../src/sandbox/sandbox.ts"

/** A sandbox as this machine has it. The caller closes it. */
export function sandboxHere(worktree: string, mode: SandboxMode = "auto"): Sandbox {
  return openSandbox({
    mode,
    platform: process.platform,
    architecture: process.arch,
    searchPath: process.env.PATH ?? "",
    worktree,
  })
}

/**
 * Tests that need a sandbox that works. Without one they are skipped, and the reason is printed; on CI (`CI=true`) they
 * run all the same, and fail.
 */
export async function describeSandboxed(name: string, tests: () => void): Promise<void> {
  const state = await sandboxHere("/nonexistent").state()
  if (state.works || process.env.CI === "true") return void describe(name, tests)
  console.warn(`skipped: ${name}. ${state.reason}`)
  describe.skip(name, () => test.skip(state.reason, () => {}))
}
