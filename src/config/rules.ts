import { builtinAgents } from "../agent/builtin.ts"
import { explainRequest } from "../permission/explain.ts"
import type { Layer, Policy } from "../permission/policy.ts"
import { defaultRules } from "../permission/rules.ts"
import { Action, type Rule } from "../schema/permission.ts"
import { nearNames } from "../util/similarity.ts"
import { foundWords } from "./check.ts"
import { byPosition, type Position, type Problem } from "./errors.ts"
import { type ConfigNode, entryOf, filterEntries, fromPlain, type ObjectNode } from "./node.ts"

/** Rules from one config file: general rules and rules for individual agents. */
export interface FileRules {
  permission: Rule[]
  agents: Map<string, Rule[]>
  examples: RuleExample[]
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

/** Keys of sections with rules. As in OpenCode 2, the rules in `permissions` follow those in `permission`. */
const ruleSections = ["permission", "permissions"] as const

/** Returns true for a key whose value contains permission rules. */
export function isRuleSection(key: string): boolean {
  return ruleSections.some((name) => name === key)
}

/**
 * Returns true for a key that probably limits what an agent may do. If such a key is unknown, the config must not be
 * used, because a deny rule could be lost.
 */
export function isRuleLike(key: string): boolean {
  if (nearNames(key, ruleSections, 2).length > 0) return true
  return ruleLike.test(key) && !harmless.test(key)
}

const ruleLike =
  /permission|polic(?:y|ies)|den(?:y|ied)|disallow|disabled?[-_]?tools|forbid|restrict|approval|sandbox|allowed|allow[-_]?list|block[-_]?list|black[-_]?list|read[-_]?only/i

/** Keys of other programs that only loosen rules, or do not concern a verdict. */
const harmless = /^(?:always[-_]?allow(?:ed)?|auto[-_]?approval|continue_loop_on_deny|blacklist)$/i

/**
 * Separates the sections with rules from a file's tree. Rules are in file order with file and line, even if their keys
 * look like numbers.
 */
export function takeRules(tree: ObjectNode): { rest: ObjectNode; rules: FileRules; problems: Problem[] } {
  const own = takeSections(tree, "")
  const rules: FileRules = { permission: own.rules, agents: new Map(), examples: own.examples }
  const problems = [...own.problems]
  const rest = filterEntries(own.rest, (entry) => {
    if (entry.key !== "agent" || entry.value.kind !== "object") return entry
    const agents = filterEntries(entry.value, (agent) => {
      if (agent.value.kind !== "object") return agent
      const found = takeSections(agent.value, `agent.${agent.key}.`)
      if (found.rules.length > 0)
        rules.agents.set(agent.key, [...(rules.agents.get(agent.key) ?? []), ...found.rules])
      rules.examples.push(...found.examples.map((example) => ({ ...example, agent: agent.key })))
      problems.push(...found.problems.map((problem) => ({ ...problem, section: entry.key })))
      return { ...agent, value: found.rest }
    })
    return { ...entry, value: agents }
  })
  return { rest, rules, problems }
}

/** The rules of a section, with examples, and the problems in it. */
interface ReadRules {
  rules: Rule[]
  examples: RuleExample[]
  problems: Problem[]
}

function takeSections(holder: ObjectNode, prefix: string): ReadRules & { rest: ObjectNode } {
  const found: ReadRules = { rules: [], examples: [], problems: [] }
  for (const name of ruleSections)
    for (const { key, value } of holder.entries) {
      if (key !== name) continue
      const { rules, examples, problems } = readRules(value, `${prefix}${key}`)
      found.rules.push(...rules)
      found.examples.push(...examples)
      found.problems.push(...problems.map((problem) => ({ ...problem, section: key })))
    }
  const rest = filterEntries(holder, (entry) => (isRuleSection(entry.key) ? undefined : entry))
  return { ...found, rest }
}

/** OpenCode 2's names for permissions that have other names in OpenCode 1 and in Tackle. */
const actionNames: ReadonlyMap<string, string> = new Map([
  ["shell", "bash"],
  ["subagent", "task"],
])

/** Returns the permission for an action in OpenCode 2's rules. */
export function permissionOfAction(action: string): string {
  return actionNames.get(action) ?? action
}

/**
 * Reads one section: a single action, or actions by permission, or by permission and pattern, or a list of rules in
 * OpenCode 2's format. `path` is the path shown in problems. Each invalid part causes a problem.
 */
export function readRules(node: ConfigNode, path: string): ReadRules {
  if (node.kind === "array") return readList(node.items, path)
  const rules: (Rule & { position: Position })[] = []
  const examples: RuleExample[] = []
  const problems: Problem[] = []

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

/** Reads a section with plain values, such as an option of a program. `path` is the source of the rules. */
export function plainRules(value: unknown, path: string): { rules: Rule[]; problems: Problem[] } {
  const { rules, problems } = readRules(fromPlain(value, { file: "", line: 1, column: 1 }), path)
  return { problems, rules: rules.map((rule) => ({ ...rule, source: { file: path } })) }
}

/** The fields of a rule in a list. All are required. */
const ruleFields = ["action", "resource", "effect"] as const

/** Reads a list of rules in OpenCode 2's format. The result contains no rule that has a problem. */
function readList(items: readonly ConfigNode[], path: string): ReadRules {
  const problems: Problem[] = []
  const rules = items.flatMap((item, index): Rule[] => {
    const where = `${path}[${index}]`
    if (item.kind !== "object") {
      const text = `${where}: expected an object with "action", "resource" and "effect", found ${foundWords(item)}.`
      problems.push({ position: item.position, text })
      return []
    }
    const before = problems.length
    for (const { key, position } of item.entries) {
      if (ruleFields.some((field) => field === key)) continue
      const [near] = nearNames(key, ruleFields, 2)
      const hint = near ? `Did you mean "${near}"?` : `Known keys: ${ruleFields.join(", ")}.`
      problems.push({ position, text: `unknown key "${where}.${key}". ${hint}` })
    }
    const [action = "", resource = ""] = ["action", "resource"].map((key) => {
      const value = entryOf(item, key)?.value
      if (value?.kind === "scalar" && typeof value.value === "string" && value.value !== "")
        return value.value
      const found = value ? `found ${foundWords(value)}` : "but it is missing"
      problems.push({
        position: value?.position ?? item.position,
        text: `${where}.${key}: expected a non-empty string, ${found}.`,
      })
      return ""
    })
    const effect = entryOf(item, "effect")
    const position = effect?.position ?? item.position
    const value = effect?.value ?? { kind: "scalar", position, value: null }
    const verdict = readAction({ value, position, path: `${where}.effect` }, "", problems)
    if (problems.length > before) return []
    const source = { file: item.position.file, line: item.position.line }
    return [{ permission: permissionOfAction(action), pattern: resource, action: verdict, source }]
  })
  return { rules, examples: [], problems }
}

/**
 * Reads the action of a pattern, which may be an object with examples. If the action is missing, or its key is
 * misspelled, the action is `ask`.
 */
function readPattern(
  node: ConfigNode,
  position: Position,
  path: string,
  problems: Problem[],
): { action: ConfigNode; examples: Omit<RuleExample, "permission">[] } {
  if (node.kind !== "object") return { action: node, examples: [] }
  let action: ConfigNode | undefined
  let isMisspelled = false
  const examples: Omit<RuleExample, "permission">[] = []
  for (const { key, position: at, value } of node.entries) {
    if (key === "action") action = value
    else if (key === "examples") examples.push(...readExamples(value, `${path}.examples`, problems))
    else {
      const [near] = nearNames(key, ["action", "examples"], 2)
      const hint = near ? `Did you mean "${near}"?` : "Known keys: action, examples."
      problems.push({ position: at, text: `unknown key "${path}.${key}". ${hint}` })
      if (near === "action") isMisspelled = true
    }
  }
  if (action) return { action, examples }
  if (!isMisspelled) {
    const text = `${path}.action is missing: expected "allow", "ask" or "deny".`
    problems.push({ position, text })
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

function readAction({ value: node, position, path }: Written, orElse: string, problems: Problem[]): Action {
  const value = node.kind === "scalar" ? node.value : undefined
  const parsed = Action.safeParse(value)
  if (parsed.success) return parsed.data
  const [near] = typeof value === "string" ? nearNames(value, Action.options, 2) : []
  const found = near ? `. Did you mean "${near}"?` : `${orElse}, found ${foundWords(node, { named: true })}.`
  problems.push({ position, text: `${path}: expected "allow", "ask" or "deny"${found}` })
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
