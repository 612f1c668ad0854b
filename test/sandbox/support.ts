import { describe, test } from "vitest"
import { openSandbox, type Sandbox, type SandboxMode } from "../../src/sandbox/sandbox.ts"

/** Opens the sandbox of this machine. The caller closes it. */
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
 * Defines tests that need a working sandbox. Without one they are skipped. With `TACKLE_TEST_COMPLETE=1`, as in CI,
 * they run and fail.
 */
export async function describeSandboxed(name: string, tests: () => void): Promise<void> {
  const state = await sandboxHere("/nonexistent").state()
  if (state.works || process.env.TACKLE_TEST_COMPLETE === "1") return void describe(name, tests)
  describe.skip(name, () => test.skip(state.reason, () => {}))
}
