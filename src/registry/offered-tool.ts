import type { Definition, Info } from "../tool/tool.ts"
import { within } from "../util/abort.ts"
import { isRecord } from "../util/json.ts"
import { type JsonSchema, toJsonSchema } from "../util/json-schema.ts"
import type { RegisteredTool, ToolSource } from "./registered-tool.ts"

/** A tool as one agent and model get it. */
export interface OfferedTool {
  id: string
  /** The name that its author gave it, where that is another: people who read the tool call it so. */
  ownName?: string
  definition: Definition
  /** JSON Schema of the parameters, as sent. */
  schema: JsonSchema
  source: ToolSource
}

/**
 * Makes a tool ready for an agent. Rejects where it is not within `limitMs`, and where what it made of itself is no tool:
 * custom ones are code of other people.
 */
export async function prepareTool(
  { tool, source, ownName }: RegisteredTool,
  agent: string,
  limitMs = defaultInitLimitMs,
): Promise<OfferedTool> {
  const ready = tool.init({ agent: { name: agent } }).then((definition) => ({ definition }))
  const inTime = await within(ready, limitMs)
  if (!inTime) throw new TypeError(`it was not ready within ${limitMs} ms`)
  const { definition } = inTime
  checkDefinition(definition)
  const schema = definition.jsonSchema ?? toJsonSchema(definition.parameters)
  return { id: tool.id, definition, schema, source, ...(ownName === undefined ? {} : { ownName }) }
}

/** A tool that belongs to the host and is in no registry, made ready like the built-in ones. */
export function prepareOwn(tool: Info, agent: string): Promise<OfferedTool> {
  return prepareTool({ tool, source: { kind: "builtin" } }, agent)
}

/** In milliseconds: the first request to the model waits so long for a tool, and goes without it then. */
const defaultInitLimitMs = 10_000

/** Throws `TypeError`, with what is missing. */
function checkDefinition(definition: unknown): void {
  const { description, parameters, execute } = isRecord(definition) ? definition : {}
  if (typeof description !== "string" || description.trim() === "")
    throw new TypeError('it has no "description", a text that tells the model what the tool does')
  if (typeof execute !== "function") throw new TypeError('it has no function "execute"')
  if (typeof parameters !== "object" || parameters === null || !("_zod" in parameters))
    throw new TypeError('its "parameters" are no schema of zod 4, such as z.object({ … })')
}
