import { builtinAgents } from "../agent/builtin.ts"
import { explainRequest } from "../permission/explain.ts"
import type { Layer, Policy } from "../permission/policy.ts"
import { defaultRules } from "../permission/rules.ts"
import { Action, type Rule } from "../schema/permission.ts"
import { nearNames } from "../util/similarity.ts"
import { foundWords } from "./check.ts"
import { byPosition, type Position, type Problem } from "./errors.ts"
import { type ConfigNode, filterEntries, type ObjectNode } from "./node.ts"

/** Rules from one config file: general rules and rules for individual agents. */
export interface FileRules {
  permission: Rule[]
  agents: Map<string, Rule[]>
  examples: RuleExample[]
}

/** A problem in a file's rules. `isAction` is true if a missing or invalid action was read as `ask`. */
export interface RuleProblem extends Problem {
  isAction?: true
}

/** An example in a rule, with the decision that is expected for a pattern. */
export interface RuleExample {
  permission: string
  pattern: string
  expected: Action
  /** Name of the agent, if the rule is part of `agent.<name>.permission`. */
  agent?: string
  position: Position
  /** Path of the example, such as `permission.bash.git *.examples.ask[0]`. */
  path: string
}

/**
 * Separates the `permission` sections from a file's tree. Rules are in file order with file and line, even if their
 * keys look like numbers. An invalid action causes a problem and is read as `ask`, so that a caller that only warns
 * never allows more than intended.
 */
export function takeRules(tree: ObjectNode): { rest: ObjectNode; rules: FileRules; problems: RuleProblem[] } {
  const rules: FileRules = { permission: [], agents: new Map(), examples: [] }
  const problems: RuleProblem[] = []
  const rest = filterEntries(tree, (entry) => {
    if (entry.key === "permission") {
      const found = readRules(entry.value, "permission")
      rules.permission.push(...found.rules)
      rules.examples.push(...found.examples)
      problems.push(...found.problems.map((problem) => ({ ...problem, section: entry.key })))
      return undefined
    }
    if (entry.key !== "agent" || entry.value.kind !== "object") return entry
    const agents = filterEntries(entry.value, (agent) => {
      if (agent.value.kind !== "object") return agent
      const value = filterEntries(agent.value, (field) => {
        if (field.key !== "permission") return field
        const found = readRules(field.value, `agent.${agent.key}.permission`)
        rules.agents.set(agent.key, [...(rules.agents.get(agent.key) ?? []), ...found.rules])
        rules.examples.push(...found.examples.map((example) => ({ ...example, agent: agent.key })))
        problems.push(...found.problems.map((problem) => ({ ...problem, section: entry.key })))
        return undefined
      })
      return { ...agent, value }
    })
    return { ...entry, value: agents }
  })
  return { rest, rules, problems }
}

/**
 * Reads one section: a single action, or actions by permission, or by permission and pattern. `path` is the path shown
 * in problems.
 */
export function readRules(
  node: ConfigNode,
  path: string,
): { rules: Rule[]; examples: RuleExample[]; problems: RuleProblem[] } {
  const rules: (Rule & { position: Position })[] = []
  const examples: RuleExample[] = []
  const problems: RuleProblem[] = []

  function add(
    { permission, pattern, ...written }: { permission: string; pattern: string } & Written,
    orElse = "",
  ): void {
    const { position } = written
    const action = readAction(written, orElse, problems)
    rules.push({
      permission,
      pattern,
      action,
      source: { file: position.file, line: position.line },
      position,
    })
  }

  if (node.kind !== "object") {
    const all = { permission: "*", pattern: "*", value: node, position: node.position, path }
    add(all, ", or an object that maps permissions to these values")
  } else {
    for (const { key, position, value } of node.entries) {
      const where = `${path}.${key}`
      if (value.kind !== "object") {
        const all = { permission: key, pattern: "*", value, position, path: where }
        add(all, ", or an object that maps patterns to these values")
      } else
        for (const { key: pattern, position: at, value: given } of value.entries) {
          const detailed = readPattern(given, at, `${where}.${pattern}`, problems)
          add({ permission: key, pattern, value: detailed.action, position: at, path: `${where}.${pattern}` })
          examples.push(...detailed.examples.map((example) => ({ ...example, permission: key })))
        }
    }
  }
  // TOML can reopen a table, so the rules are sorted by their order in the text.
  rules.sort(byPosition)
  return { rules: rules.map(({ position: _, ...rule }) => rule), examples, problems }
}

/**
 * Reads the action of a pattern, which may be an object with examples. If the action is missing, or its key is
 * misspelled, the action is `ask`.
 */
function readPattern(
  node: ConfigNode,
  position: Position,
  path: string,
  problems: RuleProblem[],
): { action: ConfigNode; examples: Omit<RuleExample, "permission">[] } {
  if (node.kind !== "object") return { action: node, examples: [] }
  let action: ConfigNode | undefined
  let misspelled: RuleProblem | undefined
  const examples: Omit<RuleExample, "permission">[] = []
  for (const { key, position: at, value } of node.entries) {
    if (key === "action") action = value
    else if (key === "examples") examples.push(...readExamples(value, `${path}.examples`, problems))
    else {
      const [near] = nearNames(key, ["action", "examples"], 2)
      const hint = near ? `Did you mean "${near}"?` : "Known keys: action, examples."
      const problem: RuleProblem = { position: at, text: `unknown key "${path}.${key}". ${hint}` }
      problems.push(problem)
      if (near === "action") misspelled ??= problem
    }
  }
  if (action) return { action, examples }
  if (misspelled) misspelled.isAction = true
  else {
    const text = `${path}.action is missing: expected "allow", "ask" or "deny".`
    problems.push({ position, text, isAction: true })
  }
  return { action: { kind: "scalar", position, value: "ask" }, examples }
}

function readExamples(
  node: ConfigNode,
  path: string,
  problems: Problem[],
): Omit<RuleExample, "permission">[] {
  if (node.kind !== "object") {
    problems.push({
      position: node.position,
      text: `${path}: expected an object that maps "allow", "ask" or "deny" to lists.`,
    })
    return []
  }
  return node.entries.flatMap(({ key, position, value }) => {
    const expected = Action.safeParse(key)
    const items = value.kind === "array" ? value.items : []
    const texts = items.flatMap((item) =>
      item.kind === "scalar" && typeof item.value === "string"
        ? [{ pattern: item.value, at: item.position }]
        : [],
    )
    if (!expected.success || value.kind !== "array" || texts.length !== items.length) {
      const text = expected.success
        ? "expected a list of strings"
        : 'expected "allow", "ask" or "deny" as the key'
      problems.push({ position, text: `${path}.${key}: ${text}.` })
      return []
    }
    return texts.map(({ pattern, at }, index) => ({
      pattern,
      expected: expected.data,
      position: at,
      path: `${path}.${key}[${index}]`,
    }))
  })
}

/** A value that should be an action. `path` is shown in problems, and `position` is the position of the key. */
interface Written {
  value: ConfigNode
  position: Position
  path: string
}

function readAction(
  { value: node, position, path }: Written,
  orElse: string,
  problems: RuleProblem[],
): Action {
  const value = node.kind === "scalar" ? node.value : undefined
  const parsed = Action.safeParse(value)
  if (parsed.success) return parsed.data
  const [near] = typeof value === "string" ? nearNames(value, Action.options, 2) : []
  const found = near ? `. Did you mean "${near}"?` : `${orElse}, found ${foundWords(node, { named: true })}.`
  problems.push({ position, text: `${path}: expected "allow", "ask" or "deny"${found}`, isAction: true })
  return "ask"
}

/** The worktree for examples. The path cannot exist, so that an example has the same result on every machine. */
const nowhere = "/dev/null/project"

const verdicts = { allow: "is allowed", ask: "needs permission", deny: "is denied" } as const

/**
 * Returns a problem for each example whose decision differs from the expected one. The examples are tested only against
 * the defaults and the rules of this file. An agent's example is also tested against the agent's rules and the ceiling
 * of a built-in agent. Relative paths are in the worktree. With `ofProject`, the rules of an agent cannot override a
 * deny.
 */
export async function brokenExamples(
  rules: FileRules,
  { home, ofProject }: { home: string; ofProject: boolean },
): Promise<Problem[]> {
  const problems: Problem[] = []
  for (const example of rules.examples) {
    const { permission, pattern, expected, position, path } = example
    const policy = policyFor(example, rules, ofProject)
    const scope = { directory: nowhere, worktree: nowhere, policy: () => policy, own: [] }
    const { verdict, rule } = await explainRequest({ permission, patterns: [pattern] }, scope, home)
    if (verdict === expected) continue
    const line = rule?.line === undefined ? "" : `:${rule.line}`
    const by = rule
      ? ` because of the rule "${rule.permission}: ${rule.pattern}" (${rule.source}${line})`
      : ""
    // The message does not quote the example, because values in a file may be secrets. The position and path identify
    // it.
    problems.push({
      position,
      section: example.agent === undefined ? "permission" : "agent",
      text: `${path}: this pattern ${verdicts[verdict]}${by}, but the example expects "${expected}". Fix the rule or the example.`,
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
  return { layers: [...layers, own], ceiling }
}
