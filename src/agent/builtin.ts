import type { Rule } from "../schema/permission.ts"
import { readText } from "../util/file-system.ts"
import { type Agent, defaultSteps } from "./agent.ts"

/** What `explore` may use at all. The last two are no tools but questions, which the general rules decide. */
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

/** The agents that are there without any configuration. The first is the default. */
export function builtinAgents(): Agent[] {
  return [
    {
      name: "build",
      description: "Works on the project with every tool; asks by rule.",
      mode: "primary",
      prompt: readText(new URL("./build.md", import.meta.url)),
      steps: defaultSteps,
      permission: [],
    },
    {
      name: "plan",
      description: "Reads and thinks, changes nothing.",
      mode: "primary",
      prompt: readText(new URL("./plan.md", import.meta.url)),
      steps: defaultSteps,
      permission: [],
      // A rule cannot tell which commands change nothing; a sandbox without a place to write can.
      sandbox: "require",
      plans: true,
      ceiling: [rule("*", "allow"), rule("edit", "deny"), rule("sandbox_escape", "deny")],
    },
    {
      name: "general",
      description: "Does a self-contained piece of work of several steps, with every tool but to-do lists.",
      mode: "subagent",
      prompt: readText(new URL("./general.md", import.meta.url)),
      steps: defaultSteps,
      permission: [],
      ceiling: [rule("*", "allow"), rule("todo", "deny"), rule("task", "deny")],
    },
    {
      name: "explore",
      description: "Searches and reads to answer a question about the project; changes nothing.",
      mode: "subagent",
      prompt: readText(new URL("./explore.md", import.meta.url)),
      steps: defaultSteps,
      permission: [],
      ceiling: [rule("*", "deny"), ...forExploring.map((name) => rule(name, "allow"))],
    },
  ]

  function rule(permission: string, action: Rule["action"]): Rule {
    return { permission, pattern: "*", action, source: { file: "built-in agent plan" } }
  }
}
