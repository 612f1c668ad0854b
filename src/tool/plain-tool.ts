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
  if (!isPlainTool(value)) return undefined
  const definition: Definition = {
    description: value.description,
    ...parametersOf(value.args),
    execute: async (args, ctx) => toResult(id, await value.execute(args, ctx)),
  }
  return define(id, definition)
}

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
