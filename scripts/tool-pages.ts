import { isDeepStrictEqual } from "node:util"
import { builtinAgents } from "../src/agent/builtin.ts"
import { permissionOf } from "../src/registry/tool-permission.ts"
import type { Definition } from "../src/tool/tool.ts"
import { defaultLimits } from "../src/tool/truncate.ts"
import { readFeatures, whyUnavailable } from "../src/tools/availability.ts"
import { type BuiltinOptions, type BuiltinTool, builtinTools } from "../src/tools/index.ts"
import { type JsonSchema, toJsonSchema } from "../src/util/json-schema.ts"

/** Tools that ask for no permission of their own, with what stands in its place. */
const asksOtherwise: Readonly<Record<string, string>> = {
  question: "nothing: it is the question",
  plan_enter: "nothing: it asks the person itself",
  plan_exit: "nothing: it asks the person itself",
  batch: "nothing: each of its calls asks for itself",
  invalid: "nothing",
  tool_search: "nothing: it tells of tools and calls none",
  job: "`bash`, with the command and what it is to read, for `input`; nothing for the rest",
}

/** What has to hold beside rules and switches. */
const conditionsOfHost: Readonly<Record<string, string>> = {
  edit: "to models that are not offered `apply_patch`",
  write: "to models that are not offered `apply_patch`",
  apply_patch: "in place of `edit` and `write` to models trained on it: `gpt-5` and later, `codex-…`",
  question: "only where somebody can answer",
  plan_enter: "only where somebody can answer, and not in plan mode",
  plan_exit: "only where somebody can answer, in plan mode",
  task: "only in a session, and not at the limit of depth",
  skill: "only where there are skills",
  job: "only where `bash` is",
  tool_search: "only in a session, in place of tools whose definitions are beyond `tool_search.maxBytes`",
  invalid: "never: the engine answers malformed calls with it",
}

/** The tools as they are without any configuration. */
const features = readFeatures({ environment: {}, experimental: {}, search: false })
const subagents = builtinAgents().filter(({ mode }) => mode === "subagent")
const surroundings: BuiltinOptions = {
  bash: { environment: () => ({}), sandboxed: true },
  task: { subagents: () => subagents },
  skills: { offered: () => [], find: () => undefined },
  features,
  search: { name: "none", search: () => Promise.reject(new Error("there is no search for a page")) },
}
const tools = builtinTools(surroundings)

/**
 * What `src/tools/schemas.json` holds: the JSON Schema of each tool's parameters by its id, as they are offered; apart
 * from the others those that depend on whether there is a sandbox.
 */
export async function toolSchemas(): Promise<
  Record<"always" | "sandboxed" | "bare", Record<string, JsonSchema>>
> {
  const without = builtinTools({ ...surroundings, bash: { ...surroundings.bash, sandboxed: false } })
  const [sandboxed, bare] = [await schemasOf(tools), await schemasOf(without)]
  const differs = ([id]: [string, JsonSchema]) => !isDeepStrictEqual(sandboxed[id], bare[id])
  return {
    always: Object.fromEntries(Object.entries(bare).filter((entry) => !differs(entry))),
    sandboxed: Object.fromEntries(Object.entries(sandboxed).filter(differs)),
    bare: Object.fromEntries(Object.entries(bare).filter(differs)),
  }
}

async function schemasOf(tools: readonly BuiltinTool[]): Promise<Record<string, JsonSchema>> {
  const schemas: Record<string, JsonSchema> = {}
  for (const { tool } of tools) schemas[tool.id] = toJsonSchema((await tool.init()).parameters)
  return schemas
}

/** The pages of `docs/tools/` by their names. */
export async function toolPages(): Promise<Map<string, string>> {
  const pages = new Map<string, string>()
  const index: string[] = []
  for (const { tool } of tools) {
    const definition = await tool.init()
    // Without a model: what depends on it is told in words.
    const missing = whyUnavailable(tool.id, features)
    const conditions = [
      ...(missing === undefined ? [] : [`not by default: ${missing}`]),
      conditionsOfHost[tool.id] ?? [],
    ].flat()
    pages.set(`${tool.id}.md`, page(tool.id, definition, conditions))
    index.push(`| [\`${tool.id}\`](${tool.id}.md) | ${cell(firstSentence(definition.description))} |`)
  }
  pages.set("README.md", `${generated}\n# Built-in tools\n\n| | |\n|---|---|\n${index.join("\n")}\n`)
  return pages
}

const generated = "<!-- Made by `node scripts/tool-docs.ts` from the tools themselves. -->\n"

function page(id: string, definition: Definition, conditions: readonly string[]): string {
  const { access, serial, timeout } = definition
  const { maxLines, maxBytes, keep } = { ...defaultLimits, ...definition.limits }
  const facts = [
    ["asks for", asksOtherwise[id] ?? `\`${permissionOf(id)}\``],
    ["access", `${access ?? "execute"}${serial ? "; never beside another call" : ""}`],
    ["output", `${maxLines} lines or ${maxBytes} bytes, ${keep === "head" ? "the beginning" : "both ends"}`],
    ...(timeout === undefined ? [] : [["time", `${timeout} ms`]]),
    ["offered", conditions.join("; ") || "always, where a rule could allow it"],
  ]
  const table = facts.map(([name, value]) => `| ${name} | ${cell(value ?? "")} |`).join("\n")
  const quoted = definition.description.split("\n").map((line) => `> ${line}`.trimEnd())
  return [
    `${generated}\n# ${id}\n`,
    `What the model is told:\n\n${quoted.join("\n")}\n`,
    `| | |\n|---|---|\n${table}\n`,
    `## Parameters\n\n${parameters(toJsonSchema(definition.parameters))}\n`,
  ].join("\n")
}

function parameters(schema: JsonSchema): string {
  const rows = rowsOf(schema, "")
  if (rows.length === 0) return "None."
  return `Those in bold are needed.\n\n| | | |\n|---|---|---|\n${rows.join("\n")}`
}

/** A row for each field, those of inner objects under their path. */
function rowsOf({ properties = {}, required = [] }: JsonSchema, prefix: string): string[] {
  return Object.entries(properties as Record<string, JsonSchema>).flatMap(([key, field]) => {
    const name = `\`${prefix}${key}\``
    const shown = (required as string[]).includes(key) ? `**${name}**` : name
    const row = `| ${shown} | ${cell(typeOf(field))} | ${cell(String(field.description ?? ""))} |`
    const inner = field.type === "array" ? (field.items as JsonSchema) : field
    return [row, ...rowsOf(inner, `${prefix}${key}${field.type === "array" ? "[]" : ""}.`)]
  })
}

function typeOf(field: JsonSchema): string {
  const { enum: values, type, items, minimum, maximum, maxLength, maxItems } = field
  if (Array.isArray(values)) return values.map((value) => `\`${value}\``).join(", ")
  const name = type === "array" ? `list of ${typeOf(items as JsonSchema)}` : String(type ?? "any")
  const bounds = [
    minimum === undefined ? "" : `from ${minimum}`,
    maximum === undefined ? "" : `to ${maximum}`,
    maxLength === undefined ? "" : `at most ${maxLength} characters`,
    maxItems === undefined ? "" : `at most ${maxItems}`,
  ].filter((text) => text !== "")
  return [name, ...bounds].join(", ")
}

function cell(text: string): string {
  return text.replaceAll("|", "\\|").replaceAll("\n", " ")
}

function firstSentence(text: string): string {
  return /^.+?\.(?=\s|$)/s.exec(text)?.[0] ?? text
}
