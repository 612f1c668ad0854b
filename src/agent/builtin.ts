import type { Rule } from "../schema/permission.ts"
import { readText } from "../util/file-system.ts"
import { type Agent, defaultSteps } from "./agent.ts"

/** Names of permissions that the ceiling of the `explore` agent does not deny. The general rules apply to them. */
const forExploring = [
  "grep",
  "glob",
  "list",
  "read",
  "bash",
  "webfetch",
  "websearch",
  "codesearch",
  "external_directory",
  "doom_loop",
]

/** Returns the built-in agents. The first is the default. */
export function builtinAgents(): Agent[] {
  return [
    {
      name: "build",
      description: "Works on the project with all tools. Asks for permission as the rules require.",
      mode: "primary",
      prompt: readText(new URL("./build.md", import.meta.url)),
      steps: defaultSteps,
      permission: [],
    },
    {
      name: "plan",
      description: "Plans without changing anything.",
      mode: "primary",
      prompt: readText(new URL("./plan.md", import.meta.url)),
      steps: defaultSteps,
      permission: [],
      // Rules cannot recognize which commands only read. A sandbox without writable directories prevents all writes.
      sandbox: "require",
      plans: true,
      ceiling: ceiling("plan", { "*": "allow", edit: "deny", sandbox_escape: "deny" }),
    },
    {
      name: "general",
      description:
        "Carries out a self-contained task with several steps. Has all tools except those for to-do lists and subagents.",
      mode: "subagent",
      prompt: readText(new URL("./general.md", import.meta.url)),
      steps: defaultSteps,
      permission: [],
      ceiling: ceiling("general", { "*": "allow", todo: "deny", task: "deny" }),
    },
    {
      name: "explore",
      description: "Answers a question about the project by searching and reading. Changes nothing.",
      mode: "subagent",
      prompt: readText(new URL("./explore.md", import.meta.url)),
      steps: defaultSteps,
      permission: [],
      ceiling: ceiling("explore", {
        "*": "deny",
        ...Object.fromEntries(forExploring.map((name) => [name, "allow" as const])),
      }),
    },
  ]
}

/** Returns the ceiling's rules. Their source contains the agent's name, so that refusals can show it. */
function ceiling(agent: string, actions: Readonly<Record<string, Rule["action"]>>): Rule[] {
  const source = { file: `built-in agent ${agent}` }
  return Object.entries(actions).map(([permission, action]) => ({
    permission,
    pattern: "*",
    action,
    source,
  }))
}
