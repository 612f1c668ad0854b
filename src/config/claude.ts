import type { Problem } from "./errors.ts"
import { type ConfigEntry, type ConfigNode, entryOf, filterEntries, type ObjectNode } from "./node.ts"

/** The translated fields of another program's file, with a note for each field that has no equivalent. */
interface Translated {
  tree: ObjectNode
  notes: Problem[]
}

/** Tackle's permissions, keyed by Claude Code's tool names. */
const toolNames: Readonly<Record<string, string>> = {
  Read: "read",
  Write: "edit",
  Edit: "edit",
  MultiEdit: "edit",
  Bash: "bash",
  BashOutput: "job",
  KillShell: "job",
  Grep: "grep",
  Glob: "glob",
  LS: "list",
  Task: "task",
  Agent: "task",
  Skill: "skill",
  TodoWrite: "todo",
  WebFetch: "webfetch",
  WebSearch: "websearch",
  LSP: "lsp",
  AskUserQuestion: "question",
  ExitPlanMode: "plan_exit",
}

/**
 * Translates the fields of a Claude Code agent. Lists of tools become `tools`. Model aliases become placeholders, which
 * {@link resolveModelAliases} replaces later. Unknown fields remain, and the config check reports them.
 */
export function claudeAgent(fields: ObjectNode): Translated {
  const notes: Problem[] = []
  const tools: ConfigEntry[] = []
  const entries = fields.entries.flatMap((entry): ConfigEntry[] => {
    if (entry.key === "tools") tools.unshift(...listed(entry, true, notes))
    else if (entry.key === "disallowedTools") tools.push(...listed(entry, false, notes))
    else return entry.key === "model" ? modelOf(entry, notes) : [entry]
    return []
  })
  const value = { kind: "object" as const, position: fields.position, entries: tools }
  const all = tools.length > 0 ? [...entries, { key: "tools", position: fields.position, value }] : entries
  return { tree: { ...fields, entries: all }, notes }
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

/**
 * Translates a list of tools. If `granted` is true, the list denies all tools that it does not contain, unless it is
 * empty or contains `*`.
 */
function listed(entry: ConfigEntry, granted: boolean, notes: Problem[]): ConfigEntry[] {
  const names = wordsOf(entry.value)
  if (granted && (names.length === 0 || names.includes("*"))) return []
  const setting = (key: string, value: boolean): ConfigEntry => ({
    key,
    position: entry.position,
    value: { kind: "scalar", position: entry.position, value },
  })
  const known = names.flatMap((name) => {
    const tool = toolOf(name)
    if (tool === undefined) {
      const text = `${entry.key}: ${name} has no equivalent in Tackle and is ignored.`
      notes.push({ position: entry.position, text })
    }
    return tool === undefined ? [] : [tool]
  })
  return [...(granted ? [setting("*", false)] : []), ...known.map((tool) => setting(tool, granted))]
}

/**
 * Returns Tackle's permission for a Claude Code tool, or undefined if Tackle has no such tool. `mcp__server__tool`
 * becomes `server_tool`, and `mcp__server` becomes `server_*`.
 */
export function toolOf(name: string): string | undefined {
  if (Object.hasOwn(toolNames, name)) return toolNames[name]
  const [, server, tool = "*"] = /^mcp__(.+?)(?:__(.+))?$/.exec(name) ?? []
  return server === undefined ? undefined : `${server}_${tool}`
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
  const text = (key: string, value: string): ConfigEntry => ({
    key,
    position,
    value: { kind: "scalar", position, value },
  })
  const [url] = named("url")
  if (url) return { ...server, entries: [text("type", "remote"), url, ...named("headers")] }
  const environment = named("env").map((entry) => ({ ...entry, key: "environment" }))
  return { ...server, entries: [text("type", "local"), ...commandOf(server), ...environment] }
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
