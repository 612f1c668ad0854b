import { join } from "node:path"
import { errorMessage } from "../util/errors.ts"
import { isRecord, parseJson } from "../util/json.ts"
import { displayPath, isInside } from "../util/paths.ts"
import type { Problem } from "./errors.ts"
import type { Location } from "./location.ts"
import { type ConfigEntry, type ConfigNode, entryOf, type ObjectNode } from "./node.ts"
import { readSmallFile } from "./read.ts"

/** Fields of another program as ours, and what of them has no meaning here. */
interface Translated {
  tree: ObjectNode
  notes: Problem[]
}

/** Claude Code's tools by their names, and what we ask for in their position. */
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
 * The fields of an agent of Claude Code as ours: its lists of tools become `tools`, a model that is an alias of Claude's
 * is left out. Fields that are not Claude's stay for the check.
 */
export function claudeAgent(fields: ObjectNode): Translated {
  const notes: Problem[] = []
  const tools: ConfigEntry[] = []
  const entries = fields.entries.flatMap((entry): ConfigEntry[] => {
    if (entry.key === "tools") tools.unshift(...listed(entry, true, notes))
    else if (entry.key === "disallowedTools") tools.push(...listed(entry, false, notes))
    else if (entry.key !== "model" || isModel(entry, notes)) return [entry]
    return []
  })
  const value = { kind: "object" as const, position: fields.position, entries: tools }
  const all = tools.length > 0 ? [...entries, { key: "tools", position: fields.position, value }] : entries
  return { tree: { ...fields, entries: all }, notes }
}

/**
 * The fields of a command in Markdown, which are Claude's for all, as those of a config: `argument-hint` is spelled with
 * an underscore there. What a command may do is left to rules: its list of tools allows nothing. `foreign`: a model that
 * is no `provider/model` is left out.
 */
export function commandFields(fields: ObjectNode, { foreign }: { foreign: boolean }): Translated {
  const notes: Problem[] = []
  const entries = fields.entries.flatMap((entry): ConfigEntry[] => {
    if (entry.key === "argument-hint") return [{ ...entry, key: "argument_hint", value: hintOf(entry.value) }]
    if (entry.key === "allowed-tools") {
      const text = "allowed-tools allows nothing here: rules decide what is asked (docs/permissions.md)."
      notes.push({ position: entry.position, text })
      return []
    }
    return !foreign || entry.key !== "model" || isModel(entry, notes) ? [entry] : []
  })
  return { tree: { ...fields, entries }, notes }
}

/** `[file]` is a list in YAML, and means the text. */
function hintOf(value: ConfigNode): ConfigNode {
  if (value.kind !== "array") return value
  const words = value.items.map((item) => (item.kind === "scalar" ? String(item.value) : "…"))
  return { kind: "scalar", position: value.position, value: `[${words.join(", ")}]` }
}

/** A list that grants stands over "no others". `*` and an empty list grant all. */
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
      const outcome = granted ? "so it is not given" : "so nothing is taken away for it"
      notes.push({ position: entry.position, text: `${entry.key}: Tackle has no tool ${name}, ${outcome}.` })
    }
    return tool === undefined ? [] : [tool]
  })
  return [...(granted ? [setting("*", false)] : []), ...known.map((tool) => setting(tool, granted))]
}

/** `mcp__server__tool` is `server_tool` here, and `mcp__server` all of its tools. */
function toolOf(name: string): string | undefined {
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

/** `sonnet`, `inherit` and their like name no model here: the agent takes that of the run. */
function isModel({ value, position }: ConfigEntry, notes: Problem[]): boolean {
  if (value.kind !== "scalar" || typeof value.value !== "string" || value.value.includes("/")) return true
  if (value.value !== "inherit") {
    notes.push({ position, text: `model: "${value.value}" is no provider/model: the run's model is used.` })
  }
  return false
}

/**
 * `.mcp.json` in the shape of Claude Code, `{"mcpServers": {…}}`, as a config with `mcp` and nothing else. `${NAME}`
 * becomes `{env:NAME}`. What has another shape is left for the check to refuse.
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

/** Program and arguments in one list. */
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
        ? { ...node, value: node.value.replaceAll(/\$\{(\w+)\}/g, "{env:$1}") }
        : node
  }
}

const names = ["settings.json", "settings.local.json"]

/**
 * Of each file of Claude Code's settings that is there, the person's first, what it says; none of it counts. Its rules
 * are not translated: its patterns match otherwise than ours, and a deny that covers less than it says is none.
 */
export function unusedClaudeSettings({ home, worktree }: Location): string[] {
  const paths = [home, worktree].flatMap((root) => names.map((name) => join(root, ".claude", name)))
  return [...new Set(paths)].flatMap((path) => {
    const keys = keysOf(path)
    if (keys === undefined || keys === "") return []
    const shown = isInside(path, worktree) ? displayPath(path, worktree) : path.replace(`${home}/`, "~/")
    return [`${shown}: ${keys}`]
  })
}

/** Undefined where there is no file. */
function keysOf(path: string): string | undefined {
  try {
    const file = readSmallFile(path)
    if (file === undefined) return undefined
    const parsed = parseJson(file.text)
    if (!parsed.ok) return `no JSON (${parsed.error})`
    const entries = isRecord(parsed.value) ? Object.entries(parsed.value) : []
    return entries
      .filter(([key]) => key !== "$schema")
      .map(([key, value]) => describe(key, value))
      .join(", ")
  } catch (error) {
    // It is no part of our config: nobody is stopped by it.
    return `it cannot be read (${errorMessage(error)})`
  }
}

function describe(key: string, value: unknown): string {
  if (!isRecord(value)) return key
  const inner = Object.entries(value).map(([name, each]) =>
    key === "permissions" && Array.isArray(each) ? `${each.length} ${name}` : name,
  )
  const advice = key === "permissions" ? "; write them as rules in `permission`" : ""
  return `${key} (${inner.join(", ")}${advice})`
}
