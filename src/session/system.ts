import { existsSync } from "node:fs"
import { join } from "node:path"
import type { Agent } from "../agent/agent.ts"
import { localDay } from "../util/local-time.ts"

/** What the model is told before the conversation: the agent's prompt, where it is, and the person's instructions. */
export function systemPrompt(input: {
  agent: Agent
  directory: string
  worktree: string
  instructions: readonly string[]
  now: Date
  /** The one file that the agent may write. */
  planFile?: string
}): string[] {
  return [input.agent.prompt, environment(input), ...input.instructions].filter((text) => text !== "")
}

function environment({
  directory,
  worktree,
  now,
  planFile,
}: {
  directory: string
  worktree: string
  now: Date
  planFile?: string
}): string {
  const lines = [
    `Working directory: ${directory}`,
    ...(worktree === directory ? [] : [`Project root: ${worktree}`]),
    `Git repository: ${existsSync(join(worktree, ".git")) ? "yes" : "no"}`,
    ...(planFile === undefined ? [] : [`Plan file, the one file that can be written: ${planFile}`]),
    `Platform: ${process.platform}`,
    // The day and not the minute: the prompt stays the same for the provider's cache.
    `Today: ${localDay(now.getTime())}`,
  ]
  return `<environment>\n${lines.join("\n")}\n</environment>`
}
