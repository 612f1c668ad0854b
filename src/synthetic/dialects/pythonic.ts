import type { Dialect, Opening } from "../dialect.ts"
import { readPython } from "../read-python.ts"
import { skipSpace, takeAll } from "../source.ts"
import { bareObject, toolCodeFence } from "./json.ts"

/** A list of calls without marks. */
const list: Opening = {
  literal: "[",
  explicit: false,
  *read(context) {
    context.source.position = context.start
    return yield* readPython(context, false)
  },
}

/** A list of calls between Llama 4's marks. */
const marked: Opening = {
  literal: "<|python_start|>",
  explicit: true,
  *read(context) {
    yield* skipSpace(context.source)
    const outcome = yield* readPython(context, true)
    if (outcome === "calls") yield* takeAll(context.source, ["<|python_end|>", "<|eom|>", "<|eot|>"])
    return outcome
  },
}

/** Calls in Python syntax, the format used by Llama 4, Gemma, and other models. */
export const pythonic: Dialect = {
  name: "pythonic",
  openings: [marked, toolCodeFence, list, bareObject],
  toolOpenings: ({ name }) => ({ ...list, literal: `${name}(` }),
  instructions: "Write all calls as one Python list, on its own line, with named arguments:",
  write: (tool, input) => `[${tool}(${Object.entries(input).map(pair).join(", ")})]`,
}

function pair([name, value]: [string, unknown]): string {
  return `${name}=${literal(value)}`
}

/** Returns the value as a Python literal. */
function literal(value: unknown): string {
  if (value === null || value === undefined) return "None"
  if (typeof value === "boolean") return value ? "True" : "False"
  if (Array.isArray(value)) return `[${value.map(literal).join(", ")}]`
  if (typeof value !== "object") return JSON.stringify(value)
  const entries = Object.entries(value).map(([key, inner]) => `${JSON.stringify(key)}: ${literal(inner)}`)
  return `{${entries.join(", ")}}`
}
