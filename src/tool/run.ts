import * as z from "zod"
import { Attachment } from "../schema/tool-state.ts"
import { TackleError } from "../util/errors.ts"
import { isRecord, plainRecord } from "../util/json.ts"
import { toJsonSchema } from "../util/json-schema.ts"
import type { ToolContext } from "./context.ts"
import { authorsExecute, type Definition, type OutputLimits, type ToolResult } from "./definition.ts"
import type { SpillOpener } from "./spill.ts"
import { defaultLimits, sizesOf, truncateOutput } from "./truncate.ts"
import { correctArguments, describeIssues, validateArguments } from "./validate.ts"

/** A tool that is ready to be called. */
export interface ReadyTool<P extends z.ZodType = z.ZodType> {
  id: string
  definition: Definition<P>
}

/** Options for a tool run. */
export interface RunOptions {
  /** Limits that override the defaults. The tool's own limits take precedence. */
  limits?: Partial<OutputLimits>
  /** Whether the agent may use `task`. If so, the notice about a truncated output suggests `task`. */
  canDelegate?: boolean
}

/** Thrown if a tool returns an invalid result, which is a bug in the tool. The message says what to fix. */
class ToolResultError extends TackleError {
  constructor(tool: string, problem: string) {
    super(
      `The ${tool} tool returned an invalid result: ${problem}. This is a bug in the tool, not in the call.`,
      { code: "tool.bad-result", recoverable: true },
    )
  }
}

/** A result that always has metadata. */
export type CompleteResult = ToolResult & { metadata: Record<string, unknown> }

/**
 * Corrects and validates the arguments, executes the tool and truncates its output. Throws `InvalidArgumentsError` if the arguments
 * are invalid, `ToolResultError` if the result is invalid, and the tool's own error if the tool fails.
 */
export async function runTool<P extends z.ZodType>(
  tool: ReadyTool<P>,
  args: unknown,
  ctx: ToolContext,
  options: RunOptions = {},
): Promise<CompleteResult> {
  const input = isRecord(args) ? await correctedInput(tool, args) : args
  return executeValidated(tool, await validateArguments(tool, input), ctx, options)
}

async function correctedInput({ id, definition }: ReadyTool, args: Record<string, unknown>) {
  const schema = definition.jsonSchema ?? toJsonSchema(definition.parameters)
  return (await correctArguments({ id, definition, schema }, args)).input
}

/** Runs a tool like {@link runTool}, but with arguments that have already been validated. */
export async function executeValidated<P extends z.ZodType>(
  tool: ReadyTool<P>,
  args: z.output<P>,
  ctx: ToolContext,
  options: RunOptions = {},
): Promise<CompleteResult> {
  const { id, definition } = tool
  const result = checked(id, await authorsExecute(definition)(args, ctx))
  if (result.metadata.truncated !== undefined) return { ...result, metadata: withSizes(result) }
  const cut = truncateOutput(result.output, {
    limits: { ...defaultLimits, ...options.limits, ...definition.limits },
    spill: ctx?.spill ?? withoutSpill,
    canDelegate: options.canDelegate,
  })
  return { ...result, output: cut.output, metadata: { ...result.metadata, ...cut.metadata } }
}

/** Adds the sizes to the metadata of a tool that limits its output itself. Only the tool can know what it omitted. */
function withSizes({ output, metadata }: CompleteResult): Record<string, unknown> {
  const { originalSize, truncatedSize } = sizesOf(output, Buffer.byteLength(output))
  return metadata.truncated === true
    ? { truncatedSize, ...metadata }
    : { originalSize, truncatedSize, ...metadata }
}

/** Replaces `spill` in a context that an application created without `spill`. */
const withoutSpill: SpillOpener = () => {
  throw new Error("the call's context has no `spill`")
}

/** Checks the types of a result, because custom tools are untrusted code. */
function checked(id: string, result: unknown): CompleteResult {
  if (!isRecord(result))
    throw new ToolResultError(id, `expected an object, got ${result === null ? "null" : typeof result}`)
  const { title, output, metadata, attachments, handover } = result as Partial<ToolResult>
  if (typeof output !== "string")
    throw new ToolResultError(id, `"output" must be a string, got ${typeof output}`)
  const complete: CompleteResult = {
    title: typeof title === "string" ? title : id,
    output,
    metadata: isRecord(metadata) ? plainRecord(metadata) : {},
  }
  if (handover !== undefined) complete.handover = handover
  if (attachments !== undefined) complete.attachments = checkedAttachments(id, attachments)
  return complete
}

/**
 * Checks the attachments, because each request resends the history, so a malformed attachment would break every later
 * request in the session.
 */
function checkedAttachments(id: string, attachments: unknown): Attachment[] {
  const parsed = z.array(Attachment).safeParse(attachments, { reportInput: true })
  if (parsed.success) return parsed.data
  throw new ToolResultError(id, `"attachments" is not valid: ${describeIssues(parsed.error)}`)
}
