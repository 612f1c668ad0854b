import * as z from "zod"
import { isRecord } from "../util/json.ts"
import type { ToolContext } from "./context.ts"
import type { ToolResult } from "./result.ts"
import { type Definition, define, type Info, isTool } from "./tool.ts"

/**
 * A tool under this id from what a file or plugin gives: `Tool.define(…)`, or the plain `{ description, args, execute }`.
 * Undefined for anything else. Throws `TypeError` for an id that is none, and for fields of another zod than 4.
 */
export function readTool(id: string, value: unknown): Info | undefined {
  if (isTool(value)) return define(id, (ctx) => value.init(ctx))
  if (!isPlainTool(value) || faultOfTool(value) !== undefined) return undefined
  const definition: Definition = {
    description: value.description,
    ...parametersOf(value.args),
    execute: async (args, ctx) => toResult(id, await value.execute(args, ctx)),
  }
  return define(id, definition)
}

/**
 * What is to be written where a value is meant as a plain tool and is none: it has one of a tool's fields, or `alone` it is
 * all that a file exports. Undefined for a tool, and for what is meant as something else. No full stop.
 */
export function faultOfTool(value: unknown, { alone = false } = {}): string | undefined {
  if (!isRecord(value) || isTool(value)) return undefined
  const { description, args, execute, parameters } = value
  const signs = [
    typeof description === "string",
    isRecord(args) || isRecord(parameters),
    typeof execute === "function",
  ]
  if (signs.filter(Boolean).length < (alone ? 1 : 2)) return undefined
  if (typeof description !== "string")
    return "it has no `description`: write what the tool does, as a string, for the model"
  if (typeof execute !== "function")
    return "it has no `execute`: write `async execute(args, ctx) { … }`, which gives a string"
  if (args === undefined && parameters !== undefined)
    return `it has \`parameters\` in place of \`args\`: write ${example}, or export \`Tool.define("name", { … })\` of "tackle/tool"`
  if (!isRecord(args)) return `it has no \`args\`: write ${example}, or \`args: {}\` where it takes none`
  if ("_zod" in args || "_def" in args)
    return `its \`args\` is a schema, where the fields alone are expected: write ${example}, without z.object(…) around them`
  return undefined
}

const example = "`args: { city: z.string() }`"

interface PlainTool {
  description: string
  args: Record<string, unknown>
  execute(args: unknown, ctx: ToolContext): Promise<string | ToolResult>
}

function isPlainTool(value: unknown): value is PlainTool {
  return (
    isRecord(value) &&
    typeof value.description === "string" &&
    isRecord(value.args) &&
    typeof value.execute === "function"
  )
}

/** Fields that are not zod's are JSON Schema: the model is told them as they are, and what it sends is not checked. */
function parametersOf(args: Record<string, unknown>): Pick<Definition, "parameters" | "jsonSchema"> {
  const fields = Object.entries(args)
  if (fields.every(([, field]) => isRecord(field) && "_zod" in field))
    return { parameters: z.object(args as z.ZodRawShape) }
  const other = fields.find(([, field]) => !isRecord(field) || "_zod" in field || "_def" in field)
  if (other)
    throw new TypeError(`its field "${other[0]}" is neither of zod 4 nor JSON Schema like the others`)
  return {
    parameters: z.looseObject({}),
    jsonSchema: { type: "object", properties: args, required: Object.keys(args) },
  }
}

function toResult(id: string, result: string | ToolResult): ToolResult {
  return typeof result === "string" ? { title: id, output: result } : result
}
