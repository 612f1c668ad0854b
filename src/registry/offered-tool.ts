import { effectiveRules } from "../permission/policy.ts"
import type { Definition, Info, InitAgent } from "../tool/tool.ts"
import { within } from "../util/abort.ts"
import { errorLine, errorMessage } from "../util/errors.ts"
import { isRecord } from "../util/json.ts"
import { type JsonSchema, toJsonSchema } from "../util/json-schema.ts"
import type { RegisteredTool, ToolScope, ToolSource } from "./registered-tool.ts"

/** A tool as offered to an agent and model. */
export interface OfferedTool {
  id: string
  definition: Definition
  /** JSON Schema of the parameters as sent to the model. */
  schema: JsonSchema
  source: ToolSource
}

/**
 * Prepares a tool for an agent. Calls `onRules` when the tool reads the agent's rules, with the rules as JSON. Rejects
 * with the error of the tool's `init`, and with `TypeError` if `init` takes longer than `limitMs` or returns an invalid
 * definition, because custom tools are third-party code.
 */
export async function prepareTool(
  { tool, source }: RegisteredTool,
  { agent: name, mode, policy }: InitScope,
  { limitMs = defaultInitLimitMs, onRules }: { limitMs?: number; onRules?: (rules: string) => void } = {},
): Promise<OfferedTool> {
  const agent: InitAgent = {
    name,
    mode,
    get permission() {
      const rules = effectiveRules(policy)
      onRules?.(JSON.stringify(rules))
      return rules
    },
  }
  const ready = tool.init({ agent }).then((definition) => ({ definition }))
  const inTime = await within(ready, limitMs)
  if (!inTime) throw new TypeError(`it was not ready within ${limitMs} ms`)
  const { definition } = inTime
  checkDefinition(definition)
  return { id: tool.id, definition, schema: schemaOf(definition), source }
}

/** Prepares a tool of the host application that is not in the registry. */
export function prepareOwn(tool: Info, scope: InitScope): Promise<OfferedTool> {
  return prepareTool({ tool, source: { kind: "builtin" } }, scope)
}

/** The agent that a tool is prepared for. */
type InitScope = Pick<ToolScope, "agent" | "mode" | "policy">

/**
 * Default maximum time to prepare a tool, in milliseconds. The first request to the model waits for the preparation.
 */
const defaultInitLimitMs = 10_000

/** Returns a copy of the schema as JSON. Throws `TypeError` if that is impossible or the schema is not an object's. */
function schemaOf({ parameters, jsonSchema }: Definition): JsonSchema {
  const schema = copyOf(() => jsonSchema ?? toJsonSchema(parameters))
  const { type } = schema
  const isObject = jsonSchema ? type === undefined || type === "object" : describesObject(schema)
  if (isObject) return schema
  throw new TypeError('its "parameters" do not describe an object: use z.object({ … })')
}

function copyOf(schema: () => JsonSchema): JsonSchema {
  try {
    return JSON.parse(JSON.stringify(schema()))
  } catch (error) {
    // Zod overflows the stack for a schema that creates itself without end.
    const isEndless = error instanceof RangeError || /circular/.test(errorMessage(error))
    const why = isEndless ? "they contain themselves or are nested too deeply" : errorLine(error)
    throw new TypeError(`its parameters cannot be written as JSON Schema: ${why}`)
  }
}

/** Returns true for an object's schema, and for a choice or a combination of such schemas. */
function describesObject(schema: unknown): boolean {
  if (!isRecord(schema)) return false
  const { type, anyOf, oneOf, allOf, $ref } = schema
  const isChoice = [anyOf, oneOf].some((list) => Array.isArray(list) && list.every(describesObject))
  return (
    type === "object" ||
    isChoice ||
    $ref !== undefined ||
    (Array.isArray(allOf) && allOf.some(describesObject))
  )
}

/** Throws `TypeError` if the definition is invalid. */
function checkDefinition(definition: unknown): void {
  const { description, parameters, execute } = isRecord(definition) ? definition : {}
  if (typeof description !== "string" || description.trim() === "")
    throw new TypeError('it has no "description", which tells the model what the tool does')
  if (typeof execute !== "function") throw new TypeError('it has no "execute" function')
  if (typeof parameters !== "object" || parameters === null || !("_zod" in parameters))
    throw new TypeError('its "parameters" are not a Zod 4 schema such as z.object({ … })')
}
