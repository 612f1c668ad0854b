import { isRecord } from "../util/json.ts"
import { repairName } from "../util/repair-json.ts"
import type { CallSink, ReadCall, SyntheticTool } from "./dialect.ts"
import { readLooseValue } from "./loose-json.ts"

/** Keys that models use for the tool's name, in order of preference. */
export const nameKeys = ["name", "tool_name", "function_name", "tool", "function", "action"] as const
/** Keys that models use for the arguments, in order of preference. */
export const argumentKeys = [
  "arguments",
  "parameters",
  "args",
  "params",
  "input",
  "tool_input",
  "action_input",
] as const

/** Keys of a call that are not arguments. */
const otherKeys = new Set(["type", "id", "call_id", "tool_call_id", "index"])

/**
 * A call read from a value, or the reason why the value is not a call. The reason completes a sentence that begins with
 * "it".
 */
type CallValue =
  | { ok: true; call: ReadCall }
  | { ok: false; reason: string; tool?: string; unknown?: ReadCall | undefined }

/**
 * Reads a call from an object such as `{"name": …, "arguments": {…}}`. Also accepts any other key of `nameKeys` and
 * `argumentKeys`, a `function` object that contains both, arguments as JSON text, arguments next to the name, and an
 * object whose only key is the tool's name.
 */
export function callOfValue(
  value: unknown,
  tools: ReadonlyMap<string, SyntheticTool>,
  exact: boolean,
): CallValue {
  if (!isRecord(value)) return { ok: false, reason: "is not a JSON object" }
  if (isRecord(value.function)) return callOfValue(value.function, tools, exact)
  const nameKey = nameKeys.find((key) => typeof value[key] === "string")
  if (nameKey === undefined) return callByKey(value, tools, exact)
  const name = String(value[nameKey])
  const found = findTool(name, tools)
  const given = argumentsOf(value, nameKey)
  if (!found.ok) return { ...found, unknown: callOfUnknown(name, given.value) }
  const { tool } = found
  if (!isRecord(given.value)) {
    return { ok: false, reason: "has no valid arguments: they must be a JSON object", tool }
  }
  const repairs = [found.repaired, exact ? undefined : "the call was not valid JSON", given.repaired].filter(
    (note) => note !== undefined,
  )
  const input = JSON.stringify(given.value)
  return { ok: true, call: { tool, input, repaired: repairs.join("; ") || undefined } }
}

/** Reads a call whose only key is the tool's name: `{"read": {"filePath": "a"}}`. */
function callByKey(
  value: Record<string, unknown>,
  tools: ReadonlyMap<string, SyntheticTool>,
  exact: boolean,
): CallValue {
  const [name, ...others] = Object.keys(value)
  const given = name === undefined ? undefined : value[name]
  if (name === undefined || others.length > 0 || !tools.has(name) || !isRecord(given))
    return { ok: false, reason: 'has no tool name: "name" is missing' }
  return callOfValue({ name, arguments: given }, tools, exact)
}

/** Finds the offered tool with this name or a similar name. If the name was only similar, `repaired` says so. */
export function findTool(
  name: string,
  tools: ReadonlyMap<string, SyntheticTool>,
): { ok: true; tool: string; repaired?: string } | { ok: false; reason: string } {
  const tool = repairName(name, [...tools.keys()])
  if (tool === undefined) {
    return {
      ok: false,
      reason: `names the tool "${name}", which is not available. Available tools: ${listOf(tools)}`,
    }
  }
  return tool === name
    ? { ok: true, tool }
    : { ok: true, tool, repaired: `the name "${name}" was read as "${tool}"` }
}

/** Returns a call to a tool that is not offered, or undefined if the name or the input cannot belong to a call. */
export function callOfUnknown(name: string, input: unknown): ReadCall | undefined {
  if (!/^[\w.:/-]{1,64}$/.test(name) || !isRecord(input) || isSchema(input)) return undefined
  return { tool: name, input: JSON.stringify(input) }
}

/** Reports a complete call to the sink. */
export function reportCall(sink: CallSink, call: ReadCall): void {
  sink.start(call.tool)
  sink.delta(call.input)
  sink.call(call)
}

/** Counts the calls to offered tools in the value. Returns 0 if the value contains anything else. */
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

/**
 * Returns true if the arguments are a schema. A model that writes a schema describes the tool instead of calling it.
 */
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
      : { value: Object.fromEntries(rest), repaired: "the arguments were next to the name" }
  }
  const given = value[key]
  if (given === null || given === "") return { value: {} }
  if (typeof given !== "string") return { value: given }
  const read = readLooseValue(given)
  return { value: read.ok ? read.value : undefined, repaired: "the arguments were a string" }
}

function listOf(tools: ReadonlyMap<string, SyntheticTool>): string {
  return [...tools.keys()].join(", ")
}
