import { builtinAgents } from "../agent/builtin.ts"
import { explainRequest } from "../permission/explain.ts"
import type { Layer, Policy } from "../permission/policy.ts"
import { defaultRules } from "../permission/rules.ts"
import type { Problem } from "./errors.ts"
import type { FileRules, RuleExample } from "./rules.ts"

/** No such place can exist, so that an example means the same on every machine: files are told by their names alone. */
const nowhere = "/dev/null/project"

const verdicts = { allow: "is allowed", ask: "asks", deny: "is denied" } as const

/**
 * The examples of a file's rules that do not hold. The file's own rules stand over the defaults and nothing else, as if
 * it were the only one; an agent's over those, with the bounds of a built-in one. Relative paths are in the worktree.
 * \`ofProject\`: the file is a project's, whose rules for an agent lift no deny.
 * The parser of commands is loaded where there is an example for `bash`.
 */
export async function brokenExamples(
  rules: FileRules,
  { home, ofProject }: { home: string; ofProject: boolean },
): Promise<Problem[]> {
  const problems: Problem[] = []
  for (const example of rules.examples) {
    const { permission, pattern, expected, place, path } = example
    const policy = policyFor(example, rules, ofProject)
    const scope = { directory: nowhere, worktree: nowhere, policy: () => policy, own: [] }
    const { verdict, rule } = await explainRequest({ permission, patterns: [pattern] }, scope, home)
    if (verdict === expected) continue
    const line = rule?.line === undefined ? "" : `:${rule.line}`
    const by = rule ? `, by the rule "${rule.permission}: ${rule.pattern}" (${rule.source}${line})` : ""
    // The example itself is a value of the file and not shown: its place and path lead to it.
    problems.push({
      place,
      section: example.agent === undefined ? "permission" : "agent",
      text: `${path}: this ${verdicts[verdict]} where the example says ${expected}${by}. Mend the rule or the example; \`tackle permission check\` explains a verdict.`,
    })
  }
  return problems
}

function policyFor({ agent }: RuleExample, rules: FileRules, ofProject: boolean): Policy {
  const layers: Layer[] = [
    { name: "defaults", rules: defaultRules() },
    { name: "user", rules: rules.permission },
  ]
  if (agent === undefined) return { layers }
  const ceiling = builtinAgents().find(({ name }) => name === agent)?.ceiling
  const own: Layer = { name: "agent", rules: rules.agents.get(agent) ?? [], keepsDenies: ofProject }
  return { layers: [...layers, own], ...(ceiling ? { ceiling } : {}) }
}
