import { availableParallelism } from "node:os"
import { join } from "node:path"
import { defineConfig } from "vitest/config"

const shared = {
  testTimeout: 30_000,
  hookTimeout: 30_000,
  // The default of one second is too short on a busy machine.
  expect: { poll: { timeout: 15_000 } },
  // The files of one worker share their modules, because loading the engine again for each file takes a second. So a test
  // restores whatever it changes in the process.
  isolate: false,
  // Real processes meet real timing. On a busy machine of others one that failed is tried again, and told as such.
  retry: process.env.CI ? 2 : 0,
}

/** Node strips the types of several hundred sources in each process that a test starts. The cache saves two thirds of that. */
const sourceEnvironment = {
  NODE_COMPILE_CACHE: join(import.meta.dirname, "node_modules/.cache/test-modules"),
}

/** These run the built command, or import the built library, as a person does. */
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
    // Most tests wait for processes and servers: twice as many files as cores keep a small machine busy.
    maxWorkers: 2 * availableParallelism(),
    projects: [
      {
        test: {
          ...shared,
          name: "source",
          include: ["test/**/*.test.ts"],
          exclude: built,
          env: sourceEnvironment,
          globalSetup: ["test/missing-programs.ts"],
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
