import type { Rule } from "../schema/permission.ts"
import { readText } from "../util/text-file.ts"
import { type Agent, defaultSteps } from "./agent.ts"

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
      ceiling: [rule("*", "allow"), rule("edit", "deny"), rule("sandbox_escape", "deny")],
    },
  ]

  function rule(permission: string, action: Rule["action"]): Rule {
    return { permission, pattern: "*", action, source: { file: "built-in agent plan" } }
  }
}
