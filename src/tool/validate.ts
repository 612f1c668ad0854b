import type * as z from "zod"
import { errorMessage, TackleError } from "../util/errors.ts"
import { isRecord } from "../util/json.ts"
import { type JsonSchema, toJsonSchema } from "../util/json-schema.ts"
import { counted } from "../util/words.ts"
import type { Definition } from "./definition.ts"
import { fitArguments } from "./fit-arguments.ts"
import { type UnknownKey, unknownKeys } from "./unknown-keys.ts"

/** Thrown if the arguments do not match the tool's schema. The message is for the model. */
export class InvalidArgumentsError extends TackleError {
  readonly tool: string
  constructor(tool: string, message: string, cause: unknown) {
    super(message, { code: "tool.invalid-arguments", recoverable: true, cause })
    this.tool = tool
  }
}

/**
 * Returns the parsed arguments with defaults and coercions applied. Throws {@link InvalidArgumentsError} if the
 * arguments are invalid. The message is the result of the tool's `formatValidationError`, or lists every invalid field
 * with the expected and actual values. If the tool's schema throws, the message reports a bug in the tool.
 */
export async function validateArguments<P extends z.ZodType>(
  tool: { id: string; definition: Definition<P> },
  args: unknown,
): Promise<z.output<P>> {
  const parsed = await parseArguments(tool, args)
  if (parsed.success) return parsed.data
  throw new InvalidArgumentsError(tool.id, describeFailure(tool, parsed.error, args), parsed.error)
}

/** Arguments after {@link correctArguments}. */
export interface CorrectedArguments {
  /** The arguments for permission requests and for validation. */
  input: Record<string, unknown>
  /** Descriptions of the changes. */
  changes: readonly string[]
  /** The result of validation, if nothing was changed and the arguments are valid. */
  valid?: { data: unknown }
}

/**
 * Corrects arguments that have the wrong form, as `fitArguments` does with the tool's JSON Schema. Values that the
 * tool's own validation accepts do not change, unless the tool has a separate JSON Schema. Never throws. The result may
 * still be invalid.
 */
export async function correctArguments(
  tool: { id: string; definition: Definition; schema: JsonSchema },
  given: Record<string, unknown>,
): Promise<CorrectedArguments> {
  const parsed = await parseArguments(tool, given).catch(() => undefined)
  const paths = parsed?.success === false ? parsed.error.issues.map(rejectedPath) : []
  const only = tool.definition.jsonSchema === undefined
  const { args: input, changes } = fitArguments(tool.schema, given, { paths, only })
  if (input !== given || !parsed?.success) return { input, changes }
  return { input, changes, valid: { data: parsed.data } }
}

/** Returns the location of the value that an issue rejects. For an unknown kind of object, the whole object is wrong. */
function rejectedPath(issue: z.core.$ZodIssue): PropertyKey[] {
  return issue.code === "invalid_union" && issue.discriminator !== undefined
    ? issue.path.slice(0, -1)
    : issue.path
}

async function parseArguments<P extends z.ZodType>(
  { id, definition }: { id: string; definition: Definition<P> },
  args: unknown,
) {
  try {
    return await definition.parameters.safeParseAsync(args, { reportInput: true })
  } catch (error) {
    throw new InvalidArgumentsError(
      id,
      `The ${id} tool could not check its arguments: ${errorMessage(error)}. This is a bug in the tool, not in the call.`,
      error,
    )
  }
}

function describeFailure(
  { id, definition }: { id: string; definition: Definition },
  error: z.ZodError,
  args: unknown,
): string {
  const problems = [describeIssues(error, args), ...unknownIn(definition, args).map(describeUnknown)]
  const message = `The ${id} tool was called with invalid arguments: ${problems.join("; ")}.\nPlease rewrite the input so it satisfies the expected schema.`
  try {
    return definition.formatValidationError?.(error) ?? message
  } catch {
    // A failing formatter must not hide the original error.
    return message
  }
}

/** Returns the unknown keys in the arguments. A schema without a JSON form has none. */
function unknownIn({ jsonSchema, parameters }: Definition, args: unknown): UnknownKey[] {
  if (!isRecord(args)) return []
  try {
    return unknownKeys(jsonSchema ?? toJsonSchema(parameters), args)
  } catch {
    return []
  }
}

function describeUnknown({ path, near, known }: UnknownKey): string {
  if (near !== undefined) return `unknown key "${path}" (did you mean "${near}"?)`
  return known.length > 0
    ? `unknown key "${path}" (known keys: ${known.join(", ")})`
    : `unknown key "${path}"`
}

/**
 * Describes all issues in one line: `filePath: expected string, got nothing; limit: expected number, got "two"`.
 * `given` contains the values before coercion. If coercion to a number failed, the text shows the original value,
 * because the error contains only NaN.
 */
export function describeIssues(error: z.ZodError, given?: unknown): string {
  return error.issues
    .map((issue) => {
      const isLost = given !== undefined && Number.isNaN(issue.input)
      return describeIssue(issue, isLost ? valueAt(given, issue.path) : issue.input)
    })
    .join("; ")
}

function valueAt(given: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>(
    (value, key) => (typeof value === "object" && value !== null ? Reflect.get(value, key) : undefined),
    given,
  )
}

function describeIssue(issue: z.core.$ZodIssue, input: unknown): string {
  const path = issue.path.length === 0 ? "the input" : issue.path.map(String).join(".")
  switch (issue.code) {
    case "invalid_type":
      return `${path}: expected ${issue.expected}, got ${describeValue(input)}`
    case "invalid_value":
      return `${path}: expected ${issue.values.map((value) => JSON.stringify(value)).join(" or ")}, got ${describeValue(input)}`
    case "unrecognized_keys":
      return `${path}: unknown ${issue.keys.length > 1 ? "keys" : "key"} ${issue.keys.map((key) => `"${key}"`).join(", ")}`
    default:
      return `${path}: ${issue.message}, got ${describeValue(input)}`
  }
}

const shownLength = 60

function describeValue(value: unknown): string {
  if (value === undefined) return "nothing"
  if (value === null) return "null"
  if (Array.isArray(value)) return `an array of ${counted(value.length, "item")}`
  if (typeof value === "object") return "an object"
  const text = typeof value === "string" ? JSON.stringify(value) : String(value)
  return text.length > shownLength ? `${text.slice(0, shownLength)}…` : text
}
