import { defineConfig } from "vitest/config"

const shared = { testTimeout: 30_000, hookTimeout: 30_000 }

export default defineConfig({
  test: {
    projects: [
      { test: { ...shared, name: "source", include: ["test/**/*.test.ts"], exclude: ["test/cli/**"] } },
      {
        // These run the built command as a person does.
        test: {
          ...shared,
          name: "command",
          include: ["test/cli/**/*.test.ts"],
          globalSetup: ["test/global-setup.ts"],
        },
      },
    ],
  },
})
