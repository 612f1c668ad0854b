import { type ConfigEntry, type ConfigNode, entryOf, filterEntries, type ObjectNode } from "./node.ts"
import { isRuleSection, permissionOfAction } from "./rules.ts"

/** Returns true for the path of an OpenCode config file. */
export function isOpencodeConfig(path: string): boolean {
  return /(?:^|\/)opencode\.jsonc?$|\/\.?opencode\/config\.(?:json|toml)$/.test(path)
}

/**
 * Translates an OpenCode config file to Tackle's keys. Understands the keys of OpenCode 1 and 2: `agents` and `mode`
 * become `agent`, `commands` becomes `command`, `plugins` becomes `plugin`, and `mcp.servers` becomes `mcp`. If a file
 * uses both names, the values are joined. Unknown keys remain, and the config check reports them.
 */
export function fromOpencode(tree: ObjectNode): ObjectNode {
  const entries: ConfigEntry[] = []
  for (const entry of withEditRule(tree).entries.map(translated)) {
    const index = joinable.has(entry.key) ? entries.findIndex(({ key }) => key === entry.key) : -1
    const before = entries[index]
    if (before) entries[index] = joined(before, entry)
    else entries.push(entry)
  }
  return { ...tree, entries }
}

/** Keys that have different names in the two versions of OpenCode. */
const joinable: ReadonlySet<string> = new Set(["agent", "command", "plugin"])

/** Translates the fields of an OpenCode agent in a config file or in front matter. */
export function opencodeAgent(agent: ObjectNode): ObjectNode {
  return filterEntries(withEditRule(agent), (entry) =>
    entry.key === "permission" ? ruleNames(entry) : { ...entry, key: agentKeys.get(entry.key) ?? entry.key },
  )
}

/** OpenCode's names for fields of an agent. */
const agentKeys: ReadonlyMap<string, string> = new Map([
  ["maxSteps", "steps"],
  ["system", "prompt"],
  ["disabled", "disable"],
])

/** OpenCode's tools that its permission `edit` covers. Disabling one of them denies all edits. */
const editTools: readonly string[] = ["write", "edit", "patch", "multiedit", "apply_patch"]

/** Adds the rule that OpenCode derives from a `tools` section without editing tools. The rule precedes all others. */
function withEditRule(holder: ObjectNode): ObjectNode {
  const tools = entryOf(holder, "tools")
  const disabled = entriesOf(tools?.value).find(
    ({ key, value }) => editTools.includes(key) && value.kind === "scalar" && value.value === false,
  )
  if (!disabled) return holder
  const { position } = disabled
  const deny = { key: "edit", position, value: { kind: "scalar", position, value: "deny" } as const }
  const rule: ConfigEntry = {
    key: "permission",
    position,
    value: { kind: "object", position, entries: [deny] },
  }
  return { ...holder, entries: [rule, ...holder.entries] }
}

function translated(entry: ConfigEntry): ConfigEntry {
  const { key, value } = entry
  switch (key) {
    case "permission":
      return ruleNames(entry)
    case "agent":
    case "agents":
      return { ...entry, key: "agent", value: mapped(value, opencodeAgent) }
    case "mode":
      return { ...entry, key: "agent", value: mapped(value, (mode) => primary(opencodeAgent(mode))) }
    case "commands":
      return { ...entry, key: "command" }
    case "plugins":
      return { ...entry, key: "plugin", value: pluginList(value) }
    case "mcp":
      return { ...entry, value: serversOf(value) }
    default:
      return entry
  }
}

function joined(before: ConfigEntry, entry: ConfigEntry): ConfigEntry {
  if (before.value.kind === "object" && entry.value.kind === "object")
    return { ...entry, value: overlay(before.value, entry.value, (under, over) => overlay(under, over)) }
  if (before.value.kind === "array" && entry.value.kind === "array")
    return { ...entry, value: { ...entry.value, items: [...before.value.items, ...entry.value.items] } }
  return entry
}

/** Adds the entries of `over`. They replace entries with the same key, except rules, unless `merge` merges the values. */
function overlay(
  under: ObjectNode,
  over: ObjectNode,
  merge?: (under: ObjectNode, over: ObjectNode) => ObjectNode,
): ObjectNode {
  const kept = under.entries.filter(({ key }) => isRuleSection(key) || !entryOf(over, key))
  const added = over.entries.map((entry) => {
    const before = entryOf(under, entry.key)?.value
    return merge && before?.kind === "object" && entry.value.kind === "object"
      ? { ...entry, value: merge(before, entry.value) }
      : entry
  })
  return { ...over, entries: [...kept, ...added] }
}

function ruleNames(entry: ConfigEntry): ConfigEntry {
  if (entry.value.kind !== "object") return entry
  const value = filterEntries(entry.value, (rule) => ({ ...rule, key: permissionOfAction(rule.key) }))
  return { ...entry, value }
}

/** Applies `change` to each object in an object. */
function mapped(node: ConfigNode, change: (value: ObjectNode) => ObjectNode): ConfigNode {
  if (node.kind !== "object") return node
  return filterEntries(node, (entry) =>
    entry.value.kind === "object" ? { ...entry, value: change(entry.value) } : entry,
  )
}

/** A mode of OpenCode 1 is a primary agent. */
function primary(agent: ObjectNode): ObjectNode {
  return withField(agent, "mode", "primary")
}

function pluginList(node: ConfigNode): ConfigNode {
  if (node.kind !== "array") return node
  const items = node.items.map((item): ConfigNode => {
    const name = entryOf(item, "package")?.value
    if (item.kind !== "object" || name === undefined) return item
    const options = entryOf(item, "options")?.value
    return options ? { kind: "array", position: item.position, items: [name, options] } : name
  })
  return { ...node, items }
}

/** Moves OpenCode 2's `servers` one level up. `disabled` becomes `enabled`. */
function serversOf(node: ConfigNode): ConfigNode {
  if (node.kind !== "object") return node
  const entries = node.entries.flatMap((entry) =>
    entry.key === "servers" && entry.value.kind === "object" && !entryOf(entry.value, "type")
      ? entry.value.entries
      : [entry],
  )
  return mapped({ ...node, entries }, (server) => {
    const disabled = entryOf(server, "disabled")
    if (disabled?.value.kind !== "scalar" || typeof disabled.value.value !== "boolean") return server
    const rest = filterEntries(server, (entry) => (entry.key === "disabled" ? undefined : entry))
    return withField(rest, "enabled", !disabled.value.value)
  })
}

function withField(node: ObjectNode, key: string, value: string | boolean): ObjectNode {
  const { position } = node
  const entry: ConfigEntry = { key, position, value: { kind: "scalar", position, value } }
  return { ...node, entries: [...node.entries.filter((each) => each.key !== key), entry] }
}

function entriesOf(node: ConfigNode | undefined): readonly ConfigEntry[] {
  return node?.kind === "object" ? node.entries : []
}
