import { isRecord } from "../util/json.ts"
import { repairName } from "../util/repair-json.ts"
import type { ReadCall, SyntheticTool } from "./dialect.ts"
import { readLooseValue } from "./loose-value.ts"

/** Keys under which models write the tool's name. In order of preference. */
export const nameKeys = ["name", "tool_name", "function_name", "tool", "function", "action"] as const
/** Keys under which models write the arguments. In order of preference. */
export const argumentKeys = [
  "arguments",
  "parameters",
  "args",
  "params",
  "input",
  "tool_input",
  "action_input",
] as const

/** Keys that say nothing of the call. */
const otherKeys = new Set(["type", "id", "call_id", "tool_call_id", "index"])

/** A call made of a value, or what is wrong with it, as the end of a sentence after "it ". */
type CallValue =
  | { ok: true; call: ReadCall }
  | { ok: false; reason: string; tool?: string; unknown?: ReadCall | undefined }

/**
 * The call that an object such as `{"name": …, "arguments": {…}}` stands for. Also understood: the other keys of
 * `nameKeys` and `argumentKeys`, a `function` object with both, arguments as a JSON text, and arguments beside the name.
 */
export function callOfValue(
  value: unknown,
  tools: ReadonlyMap<string, SyntheticTool>,
  exact: boolean,
): CallValue {
  if (!isRecord(value)) return { ok: false, reason: "is no JSON object" }
  if (isRecord(value.function)) return callOfValue(value.function, tools, exact)
  const nameKey = nameKeys.find((key) => typeof value[key] === "string")
  if (nameKey === undefined) return callByKey(value, tools, exact)
  const name = String(value[nameKey])
  const found = findTool(name, tools)
  const given = argumentsOf(value, nameKey)
  if (!found.ok) return { ...found, unknown: callOfUnknown(name, given.value) }
  const { tool } = found
  if (!isRecord(given.value)) {
    return { ok: false, reason: "gives no arguments: they must be a JSON object", tool }
  }
  const mended = [found.repaired, exact ? undefined : "the call was no valid JSON", given.repaired].filter(
    (note) => note !== undefined,
  )
  const input = JSON.stringify(given.value)
  return { ok: true, call: { tool, input, ...(mended.length > 0 && { repaired: mended.join("; ") }) } }
}

/** A call of the only key: `{"read": {"filePath": "a"}}`. */
function callByKey(
  value: Record<string, unknown>,
  tools: ReadonlyMap<string, SyntheticTool>,
  exact: boolean,
): CallValue {
  const [name, ...others] = Object.keys(value)
  const given = name === undefined ? undefined : value[name]
  if (name === undefined || others.length > 0 || !tools.has(name) || !isRecord(given))
    return { ok: false, reason: 'names no tool: "name" is missing' }
  return callOfValue({ name, arguments: given }, tools, exact)
}

/** The offered tool that the name means: near names are understood, and the note says so. */
export function findTool(
  name: string,
  tools: ReadonlyMap<string, SyntheticTool>,
): { ok: true; tool: string; repaired?: string } | { ok: false; reason: string } {
  const tool = repairName(name, [...tools.keys()])
  if (tool === undefined) {
    return { ok: false, reason: `names the tool "${name}", which there is not: use ${listOf(tools)}` }
  }
  return tool === name
    ? { ok: true, tool }
    : { ok: true, tool, repaired: `the name "${name}" was read as "${tool}"` }
}

/** The call of a tool that is not offered, as it is told to whoever has to answer it. Undefined where it may be none. */
export function callOfUnknown(name: string, input: unknown): ReadCall | undefined {
  if (!/^[\w.:/-]{1,64}$/.test(name) || !isRecord(input) || isSchema(input)) return undefined
  return { tool: name, input: JSON.stringify(input) }
}

/** How many calls of offered tools the value is; 0 where it, or anything in it, is something else. */
export function plainCalls(value: unknown, tools: ReadonlyMap<string, SyntheticTool>): number {
  const inner = isRecord(value) ? (value.tool_calls ?? value.tool_call ?? value) : value
  const values = Array.isArray(inner) ? inner : [inner]
  return values.every((call) => isPlainCall(call, tools)) ? values.length : 0
}

function isPlainCall(value: unknown, tools: ReadonlyMap<string, SyntheticTool>): boolean {
  if (!isRecord(value)) return false
  const inner = isRecord(value.function) ? value.function : value
  const name = nameKeys.map((key) => inner[key]).find((given) => typeof given === "string")
  const key = argumentKeys.find((candidate) => candidate in inner)
  return typeof name === "string" && tools.has(name) && key !== undefined && !isSchema(inner[key])
}

/** What stands in the place of arguments where a tool is described, not called. */
function isSchema(value: unknown): boolean {
  return (
    isRecord(value) && value.type === "object" && ("properties" in value || Object.keys(value).length === 1)
  )
}

function argumentsOf(value: Record<string, unknown>, nameKey: string): { value: unknown; repaired?: string } {
  const key = argumentKeys.find((candidate) => candidate !== nameKey && candidate in value)
  if (key === undefined) {
    const rest = Object.entries(value).filter(([name]) => name !== nameKey && !otherKeys.has(name))
    return rest.length === 0
      ? { value: {} }
      : { value: Object.fromEntries(rest), repaired: "the arguments stood beside the name" }
  }
  const given = value[key]
  if (given === null || given === "") return { value: {} }
  if (typeof given !== "string") return { value: given }
  const read = readLooseValue(given)
  return { value: read.ok ? read.value : undefined, repaired: "the arguments were a text" }
}

function listOf(tools: ReadonlyMap<string, SyntheticTool>): string {
  return [...tools.keys()].join(", ")
}
