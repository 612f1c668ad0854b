import { nearNames } from "../model/near-name.ts"
import { Action, type Rule } from "../schema/permission.ts"
import type { Place, Problem } from "./errors.ts"
import { type ConfigNode, filterEntries, type ObjectNode } from "./node.ts"

/** The rules of one config file: its own, and by agent. */
export interface FileRules {
  permission: Rule[]
  agents: Map<string, Rule[]>
}

/**
 * Takes every `permission` section out of a file's tree. Rules come in written order, each with its file and line, also
 * where keys look like numbers. What is no action becomes a problem and the action `ask`, so that a caller who only
 * warns of problems allows nothing by it.
 */
export function takeRules(tree: ObjectNode): { rest: ObjectNode; rules: FileRules; problems: Problem[] } {
  const problems: Problem[] = []
  const rules: FileRules = { permission: [], agents: new Map() }
  const rest = filterEntries(tree, (entry) => {
    if (entry.key === "permission") {
      rules.permission.push(...readRules(entry.value, "permission", problems))
      return undefined
    }
    if (entry.key !== "agent" || entry.value.kind !== "object") return entry
    const agents = filterEntries(entry.value, (agent) => {
      if (agent.value.kind !== "object") return agent
      const value = filterEntries(agent.value, (field) => {
        if (field.key !== "permission") return field
        const found = readRules(field.value, `agent.${agent.key}.permission`, problems)
        rules.agents.set(agent.key, [...(rules.agents.get(agent.key) ?? []), ...found])
        return undefined
      })
      return { ...agent, value }
    })
    return { ...entry, value: agents }
  })
  return { rest, rules, problems }
}

/** One section: an action for everything, or permissions to an action or to patterns. */
function readRules(node: ConfigNode, path: string, problems: Problem[]): Rule[] {
  const rules: (Rule & { place: Place })[] = []

  function add(permission: string, pattern: string, value: ConfigNode, place: Place, where: string): void {
    const action = readAction(value, place, where, problems)
    rules.push({ permission, pattern, action, source: { file: place.file, line: place.line }, place })
  }

  if (node.kind !== "object") add("*", "*", node, node.place, path)
  else {
    for (const { key, place, value } of node.entries) {
      const where = `${path}.${key}`
      if (value.kind !== "object") add(key, "*", value, place, where)
      else
        for (const inner of value.entries)
          add(key, inner.key, inner.value, inner.place, `${where}.${inner.key}`)
    }
  }
  // TOML may come back to a table: what counts is the order in the text.
  return rules
    .sort((a, b) => a.place.line - b.place.line || a.place.column - b.place.column)
    .map(({ place: _, ...rule }) => rule)
}

function readAction(node: ConfigNode, place: Place, path: string, problems: Problem[]): Action {
  const value = node.kind === "scalar" ? node.value : undefined
  const parsed = Action.safeParse(value)
  if (parsed.success) return parsed.data
  const [near] = typeof value === "string" ? nearNames(value, Action.options, 2) : []
  const hint = near ? ` Did you mean "${near}"?` : ""
  problems.push({ place, text: `${path}: expected "allow", "ask" or "deny".${hint}` })
  return "ask"
}
