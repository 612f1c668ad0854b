import type { Plugin } from "tackle/plugin"

/** Matches pushes to protected branches. */
const closed = /\bgit\s+push\b.*\b(?:main|release)\b/

/** Team rules for every call: no push to protected branches, and tests without watch mode. */
export const HouseRules: Plugin = async () => ({
  async "tool.execute.before"({ tool }, { args }) {
    if (tool !== "bash" || typeof args.command !== "string") return
    if (closed.test(args.command)) throw new Error("main and release are changed by pull request alone")
    // Tackle shows, checks and runs the changed command.
    args.command = args.command.replace(/^npm test$/, "npm test -- --run")
  },

  async "permission.ask"(input, output) {
    if (input.type === "edit" && input.pattern.some((path) => path.endsWith(".lock"))) output.status = "ask"
  },

  async "shell.env"(_, { env }) {
    env.CI = "1"
  },
})
