import { availableParallelism } from "node:os"
import { join } from "node:path"
import { defineConfig } from "vitest/config"

const shared = {
  testTimeout: 30_000,
  hookTimeout: 30_000,
  // The default of one second is too short on a busy machine.
  expect: { poll: { timeout: 15_000 } },
  // The files of one worker share their modules, because loading the engine again for each file takes a second. Each test
  // therefore restores whatever it changes in the process.
  isolate: false,
  // On a busy machine, tests with real processes can exceed a time limit. CI repeats a failed test and reports this.
  retry: process.env.CI ? 2 : 0,
}

/** Some processes of tests strip the types of several hundred sources. The cache saves two thirds of this time. */
const sourceEnvironment = {
  NODE_COMPILE_CACHE: join(import.meta.dirname, "node_modules/.cache/test-modules"),
}

/** Tests that run the built command, or import the built library, as a user does. */
const built = [
  "test/cli/**/*.test.ts",
  "test/examples/**/*.test.ts",
  "test/docs.test.ts",
  "test/package.test.ts",
  "test/web/**/*.test.ts",
  "test/crash/*.test.ts",
]

export default defineConfig({
  test: {
    // Most tests wait for processes and servers, so more files than cores run at the same time.
    maxWorkers: availableParallelism() + 3,
    projects: [
      {
        test: {
          ...shared,
          name: "source",
          include: ["test/**/*.test.ts"],
          exclude: built,
          env: sourceEnvironment,
          globalSetup: ["test/process-scripts.ts", "test/missing-programs.ts"],
        },
      },
      {
        test: {
          ...shared,
          name: "command",
          include: built,
          globalSetup: ["test/global-setup.ts", "test/missing-programs.ts"],
        },
      },
    ],
  },
})
