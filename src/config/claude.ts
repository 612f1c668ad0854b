import type { Rule } from "../schema/permission.ts"
import { toolOf, translateRule } from "./claude-rules.ts"
import { ConfigError, type Position, type Problem } from "./errors.ts"
import { type ConfigEntry, type ConfigNode, entryOf, filterEntries, type ObjectNode } from "./node.ts"
import { isRuleLike } from "./rules.ts"

/** The translated fields of another program's file, with a note for each field that has no equivalent. */
interface Translated {
  tree: ObjectNode
  notes: Problem[]
}

/**
 * Translates the fields of a Claude Code agent. Lists of tools become `tools`, and denied rules such as `Bash(rm:*)`
 * become `permissions`. Model aliases become placeholders, which {@link resolveModelAliases} replaces later. Unknown
 * fields remain, and the config check reports them. Throws `ConfigError` for a denied tool that cannot be translated.
 */
export function claudeAgent(fields: ObjectNode): Translated {
  const notes: Problem[] = []
  const tools: ConfigEntry[] = []
  const denied: ConfigNode[] = []
  const entries = fields.entries.flatMap((entry): ConfigEntry[] => {
    switch (entry.key) {
      case "tools":
        tools.unshift(...granted(entry, notes))
        return []
      case "disallowedTools": {
        const found = disallowed(entry, notes)
        tools.push(...found.tools)
        denied.push(...found.rules)
        return []
      }
      case "permissionMode":
        return modeOf(entry, denied, notes)
      case "maxTurns":
        return [{ ...entry, key: "steps" }]
      case "model":
        return modelOf(entry, notes)
      default:
        return [entry]
    }
  })
  const { position } = fields
  if (tools.length > 0)
    entries.push({ key: "tools", position, value: { kind: "object", position, entries: tools } })
  if (denied.length > 0)
    entries.push({ key: "permissions", position, value: { kind: "array", position, items: denied } })
  return { tree: { ...fields, entries }, notes }
}

/** Claude Code's permission modes that do not restrict an agent more than Tackle's rules. */
const looseModes: ReadonlySet<unknown> = new Set([
  "default",
  "manual",
  "acceptEdits",
  "bypassPermissions",
  "dontAsk",
  "auto",
])

/** Translates the mode `plan` to rules that deny all changes. An unknown mode remains, so that the check rejects it. */
function modeOf(entry: ConfigEntry, denied: ConfigNode[], notes: Problem[]): ConfigEntry[] {
  const { position } = entry
  const mode = entry.value.kind === "scalar" ? entry.value.value : undefined
  if (mode === "plan") {
    for (const permission of ["edit", "sandbox_escape"])
      denied.push(denyRule({ permission, pattern: "*" }, position))
    return []
  }
  if (!looseModes.has(mode)) return [entry]
  notes.push({
    position,
    text: "permissionMode is ignored, because permission rules decide what is allowed.",
  })
  return []
}

function denyRule(
  { permission, pattern }: Pick<Rule, "permission" | "pattern">,
  position: Position,
): ObjectNode {
  const field = (key: string, value: string): ConfigEntry => ({
    key,
    position,
    value: { kind: "scalar", position, value },
  })
  const entries = [field("action", permission), field("resource", pattern), field("effect", "deny")]
  return { kind: "object", position, entries }
}

/**
 * Translates the fields of a Markdown command, which use Claude Code's names in every dialect. Drops the list of
 * allowed tools, because rules decide what a command may do. If `foreign` is true, also drops a model that is neither
 * `provider/model` nor an alias.
 */
export function commandFields(fields: ObjectNode, { foreign }: { foreign: boolean }): Translated {
  const notes: Problem[] = []
  const entries = fields.entries.flatMap((entry): ConfigEntry[] => {
    if (entry.key === "argument-hint") return [{ ...entry, key: "argument_hint", value: hintOf(entry.value) }]
    if (entry.key === "allowed-tools") {
      const text =
        "allowed-tools is ignored, because permission rules decide which tools are allowed (docs/permissions.md)."
      notes.push({ position: entry.position, text })
      return []
    }
    return foreign && entry.key === "model" ? modelOf(entry, notes) : [entry]
  })
  return { tree: { ...fields, entries }, notes }
}

/** Returns the hint as text. YAML parses `[file]` as a list. */
function hintOf(value: ConfigNode): ConfigNode {
  if (value.kind !== "array") return value
  const words = value.items.map((item) => (item.kind === "scalar" ? String(item.value) : "…"))
  return { kind: "scalar", position: value.position, value: `[${words.join(", ")}]` }
}

/** Translates the list of an agent's tools. All others are denied, unless the list is empty or contains `*`. */
function granted(entry: ConfigEntry, notes: Problem[]): ConfigEntry[] {
  const names = wordsOf(entry.value)
  if (names.length === 0 || names.includes("*")) return []
  const known = names.flatMap((name) => {
    const tool = toolOf(name)
    if (tool === undefined) notes.push(ignoredTool(name, entry))
    return tool === undefined ? [] : [tool]
  })
  return [toolSetting("*", false, entry), ...known.map((tool) => toolSetting(tool, true, entry))]
}

/** Translates the list of the tools that an agent must not use. */
function disallowed(entry: ConfigEntry, notes: Problem[]): { tools: ConfigEntry[]; rules: ConfigNode[] } {
  const tools: ConfigEntry[] = []
  const rules: ConfigNode[] = []
  // An agent's file can be in a directory below `.claude/agents`.
  const [base = ""] = entry.position.file.split(/\/\.claude\/agents\/(?!.*\/\.claude\/agents\/)/)
  for (const name of wordsOf(entry.value)) {
    const tool = toolOf(name)
    const translated = tool === undefined ? translateRule(name, base) : "no such tool"
    if (tool !== undefined) tools.push(toolSetting(tool, false, entry))
    else if (translated === "no such tool") notes.push(ignoredTool(name, entry))
    else if (translated === "not understood")
      throw new ConfigError([
        {
          position: entry.position,
          text: `${entry.key}: Tackle does not understand ${JSON.stringify(name)}. Correct it, or write rules under "permission" in a Tackle config.`,
        },
      ])
    else rules.push(...translated.map((rule) => denyRule(rule, entry.position)))
  }
  return { tools, rules }
}

function ignoredTool(name: string, { key, position }: ConfigEntry): Problem {
  return { position, text: `${key}: ${name} has no equivalent in Tackle and is ignored.` }
}

function toolSetting(key: string, value: boolean, { position }: ConfigEntry): ConfigEntry {
  return { key, position, value: { kind: "scalar", position, value } }
}

function wordsOf(value: ConfigNode): string[] {
  if (value.kind === "array") return value.items.flatMap(wordsOf)
  if (value.kind === "object" || value.value === null) return []
  return String(value.value)
    .split(/,(?![^(]*\))/)
    .map((word) => word.trim())
    .filter((word) => word !== "")
}

const modelAliases: ReadonlySet<unknown> = new Set(["fable", "haiku", "opus", "sonnet"])

/** A placeholder for the provider of an alias, until the configured models are known. */
const aliasProvider = "claude-code-alias"

/**
 * Replaces an alias with a placeholder. Returns an empty list for `inherit` and for any other name without a provider.
 * Returns all other values unchanged.
 */
function modelOf(entry: ConfigEntry, notes: Problem[]): ConfigEntry[] {
  const { value, position } = entry
  if (value.kind !== "scalar" || typeof value.value !== "string" || value.value.includes("/")) return [entry]
  if (modelAliases.has(value.value))
    return [{ ...entry, value: { ...value, value: `${aliasProvider}/${value.value}` } }]
  if (value.value !== "inherit")
    notes.push({
      position,
      text: `model: "${value.value}" does not have the form provider/model, and is not one of ${[...modelAliases].join(", ")} and inherit. The field is ignored.`,
    })
  return []
}

/**
 * Replaces an alias such as `opus` in agents and commands with a matching Claude model in the config.
 * Prefers models from the provider in `model`, and then the last name in alphanumeric order, which is usually the
 * newest model. If the config contains no matching model, removes the alias and adds a note.
 */
export function resolveModelAliases(tree: ObjectNode): Translated {
  const notes: Problem[] = []
  const main = textIn(entryOf(tree, "model")?.value)
  const known = [
    main,
    textIn(entryOf(tree, "small_model")?.value),
    ...sectionModels(tree),
    ...providerModels(tree),
  ]
  const isMain = (name: string) => main !== undefined && name.split("/")[0] === main.split("/")[0]
  const ranked = known
    .filter((name) => name !== undefined && /claude/i.test(name) && !name.startsWith(`${aliasProvider}/`))
    .map(String)
    .sort((a, b) => Number(isMain(b)) - Number(isMain(a)) || b.localeCompare(a, "en", { numeric: true }))

  function resolved(entry: ConfigEntry): ConfigEntry | undefined {
    const [provider, alias = ""] = textIn(entry.value)?.split("/") ?? []
    if (entry.key !== "model" || provider !== aliasProvider) return entry
    const model = ranked.find((name) => name.toLowerCase().includes(alias))
    if (model !== undefined) return { ...entry, value: { ...entry.value, kind: "scalar", value: model } }
    const text = `model: the config contains no Claude model that matches "${alias}". The field is ignored.`
    notes.push({ position: entry.position, text })
    return undefined
  }

  const changed = filterEntries(tree, (section) => {
    if (!sections.includes(section.key) || section.value.kind !== "object") return section
    const value = filterEntries(section.value, (entry) =>
      entry.value.kind === "object" ? { ...entry, value: filterEntries(entry.value, resolved) } : entry,
    )
    return { ...section, value }
  })
  return { tree: changed, notes }
}

const sections = ["agent", "command"]

function sectionModels(tree: ObjectNode): (string | undefined)[] {
  return sections.flatMap((key) =>
    entriesOf(entryOf(tree, key)?.value).map(({ value }) => textIn(entryOf(value, "model")?.value)),
  )
}

function providerModels(tree: ObjectNode): string[] {
  return entriesOf(entryOf(tree, "provider")?.value).flatMap(({ key: provider, value }) =>
    entriesOf(entryOf(value, "models")?.value).map(({ key }) => `${provider}/${key}`),
  )
}

function entriesOf(node: ConfigNode | undefined): readonly ConfigEntry[] {
  return node?.kind === "object" ? node.entries : []
}

function textIn(node: ConfigNode | undefined): string | undefined {
  return node?.kind === "scalar" && typeof node.value === "string" ? node.value : undefined
}

/**
 * Translates Claude Code's `.mcp.json`, `{"mcpServers": {…}}`, to a config that contains only `mcp`. Keeps the URL and
 * the headers of a remote server, and the command, arguments and environment of a local server. `${NAME}` becomes
 * `{env:NAME}`, and `${NAME:-default}` becomes `{env:NAME:-default}`. Values that are not objects remain unchanged, so
 * that the check rejects them.
 */
export function fromClaudeServers(tree: ObjectNode): ObjectNode {
  const servers = entryOf(tree, "mcpServers")
  if (!servers) return { ...tree, entries: [] }
  const value =
    servers.value.kind === "object"
      ? {
          ...servers.value,
          entries: servers.value.entries.map((entry) => ({ ...entry, value: serverOf(entry.value) })),
        }
      : servers.value
  return { ...tree, entries: [{ ...servers, key: "mcp", value }] }
}

function serverOf(given: ConfigNode): ConfigNode {
  const server = withVariables(given)
  if (server.kind !== "object") return server
  const { entries, position } = server
  const named = (key: string) => entries.filter((entry) => entry.key === key)
  // The config check rejects unknown limits.
  const limits = entries
    .filter(({ key }) => key === "disabled" || isRuleLike(key))
    .map((entry) => (entry.key === "disabled" ? enabledOf(entry) : entry))
  const text = (key: string, value: string): ConfigEntry => ({
    key,
    position,
    value: { kind: "scalar", position, value },
  })
  const [url] = named("url")
  if (url) return { ...server, entries: [text("type", "remote"), url, ...named("headers"), ...limits] }
  const environment = named("env").map((entry) => ({ ...entry, key: "environment" }))
  return { ...server, entries: [text("type", "local"), ...commandOf(server), ...environment, ...limits] }
}

function enabledOf(entry: ConfigEntry): ConfigEntry {
  const { value } = entry
  if (value.kind !== "scalar" || typeof value.value !== "boolean") return { ...entry, key: "enabled" }
  return { ...entry, key: "enabled", value: { ...value, value: !value.value } }
}

/** Joins a server's program and its arguments into one list. */
function commandOf(server: ObjectNode): ConfigEntry[] {
  const [command, args] = [entryOf(server, "command"), entryOf(server, "args")]
  if (!command) return []
  const rest = args?.value.kind === "array" ? args.value.items : []
  const value = { kind: "array", position: command.value.position, items: [command.value, ...rest] } as const
  return [{ ...command, value }]
}

function withVariables(node: ConfigNode): ConfigNode {
  switch (node.kind) {
    case "array":
      return { ...node, items: node.items.map(withVariables) }
    case "object":
      return {
        ...node,
        entries: node.entries.map((entry) => ({ ...entry, value: withVariables(entry.value) })),
      }
    default:
      return typeof node.value === "string"
        ? { ...node, value: node.value.replaceAll(/\$\{(\w+(?::-[^{}]*)?)\}/g, "{env:$1}") }
        : node
  }
}
