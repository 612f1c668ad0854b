import * as z from "zod"
import { isRecord } from "../util/json.ts"
import type { ToolContext } from "./context.ts"
import { type Definition, define, type Info, isTool, isToolId, type ToolResult } from "./tool.ts"

/**
 * Converts an export from a file or plugin to a tool with this id. The export is the result of `Tool.define(…)` or a
 * plain object `{ description, args, execute }`. If the author chose another valid id, that id becomes the alias.
 * Returns undefined for any other value. Throws `TypeError` if the id is invalid, or if the fields of `args` are
 * neither all Zod 4 schemas nor all JSON Schemas.
 */
export function readTool(id: string, value: unknown): Info | undefined {
  if (isTool(value)) {
    const tool = define(id, (ctx) => value.init(ctx))
    return value.id !== id && isToolId(value.id) ? { ...tool, alias: value.id } : tool
  }
  if (!isPlainTool(value) || problemOfTool(value) !== undefined) return undefined
  const definition: Definition = {
    description: value.description,
    ...parametersOf(value.args),
    execute: async (args, ctx) => toResult(id, await value.execute(args, ctx)),
  }
  return define(id, definition)
}

/**
 * Returns what is wrong with a value that looks like a plain tool, as a phrase without a full stop. A value looks like
 * a plain tool if it has two of a tool's fields, or one of them if `alone` is true. Set `alone` if the file exports no
 * tool. Returns undefined for tools and other values.
 */
export function problemOfTool(value: unknown, { alone = false } = {}): string | undefined {
  if (!isRecord(value) || isTool(value)) return undefined
  const { description, args, execute, parameters } = value
  const signs = [
    typeof description === "string",
    isRecord(args) || isRecord(parameters),
    typeof execute === "function",
  ]
  if (signs.filter(Boolean).length < (alone ? 1 : 2)) return undefined
  if (typeof description !== "string")
    return "it has no `description`: add a string that tells the model what the tool does"
  if (typeof execute !== "function")
    return "it has no `execute`: add `async execute(args, ctx) { … }` that returns a string"
  if (args === undefined && parameters !== undefined)
    return `it has \`parameters\` instead of \`args\`: write ${example}, or export \`Tool.define("name", { … })\` from "tackle/tool"`
  if (!isRecord(args))
    return `it has no \`args\`: add ${example}, or \`args: {}\` for a tool without arguments`
  if ("_zod" in args || "_def" in args)
    return `its \`args\` is a schema instead of an object of fields: write ${example}, without z.object(…)`
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

/**
 * Returns the parameters of a plain tool. Fields that are not Zod schemas are JSON Schemas: the model receives these
 * fields unchanged, and the arguments of calls are not validated.
 */
function parametersOf(args: Record<string, unknown>): Pick<Definition, "parameters" | "jsonSchema"> {
  const fields = Object.entries(args)
  if (fields.every(([, field]) => isRecord(field) && "_zod" in field))
    return { parameters: z.object(args as z.ZodRawShape) }
  const other = fields.find(([, field]) => !isRecord(field) || "_zod" in field || "_def" in field)
  if (other)
    throw new TypeError(
      `the fields of its \`args\` must be either all Zod 4 schemas or all JSON Schemas: check the field "${other[0]}"`,
    )
  return {
    parameters: z.looseObject({}),
    jsonSchema: { type: "object", properties: args, required: Object.keys(args) },
  }
}

function toResult(id: string, result: string | ToolResult): ToolResult {
  return typeof result === "string" ? { title: id, output: result } : result
}
