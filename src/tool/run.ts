import * as z from "zod"
import { Attachment } from "../schema/tool-state.ts"
import { TackleError } from "../util/errors.ts"
import { isRecord, plainRecord } from "../util/json.ts"
import type { ToolContext } from "./context.ts"
import type { ToolResult } from "./result.ts"
import type { Definition, OutputLimits } from "./tool.ts"
import { defaultLimits, truncateOutput } from "./truncate.ts"
import { describeIssues, validateArguments } from "./validate.ts"

/** A tool ready to be called. */
export interface ReadyTool<P extends z.ZodType = z.ZodType> {
  id: string
  definition: Definition<P>
}

/** How a run is bounded beyond what the tool itself says. */
export interface RunOptions {
  /** Replaces the default limits; the tool's own come over these. */
  limits?: Partial<OutputLimits>
  /** True where the agent may use `task`: the note under a cut output then says so. */
  canDelegate?: boolean
}

/** A tool returned something that is no result. A defect of the tool; the text says what to mend. */
export class ToolResultError extends TackleError {
  constructor(tool: string, problem: string) {
    super(
      `The ${tool} tool returned an invalid result: ${problem}. This is a bug in the tool, not in the call.`,
      {
        code: "tool.bad-result",
        recoverable: true,
      },
    )
  }
}

/** validate → execute → truncate, fresh for each call. What every path to a tool goes through, also a script's. */
export async function runTool<P extends z.ZodType>(
  tool: ReadyTool<P>,
  args: unknown,
  ctx: ToolContext,
  options: RunOptions = {},
): Promise<CompleteResult> {
  return executeValidated(tool, await validateArguments(tool, args), ctx, options)
}

/** A result with nothing left open. */
export type CompleteResult = ToolResult & { metadata: Record<string, unknown> }

/** The second half of {@link runTool}, for arguments that were validated before. */
export async function executeValidated<P extends z.ZodType>(
  tool: ReadyTool<P>,
  args: z.output<P>,
  ctx: ToolContext,
  options: RunOptions = {},
): Promise<CompleteResult> {
  const { id, definition } = tool
  const result = checked(id, await definition.execute(args, ctx))
  if (result.metadata.truncated !== undefined) return result
  const cut = truncateOutput(result.output, {
    limits: { ...defaultLimits, ...options.limits, ...definition.limits },
    spill: ctx.spill,
    canDelegate: options.canDelegate ?? false,
  })
  return { ...result, output: cut.output, metadata: { ...result.metadata, ...cut.metadata } }
}

/** Custom tools are code of other people: their word on types is checked. */
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

/** A malformed one would spoil every later request of the session, since the history is sent again each time. */
function checkedAttachments(id: string, attachments: unknown): Attachment[] {
  const parsed = z.array(Attachment).safeParse(attachments, { reportInput: true })
  if (parsed.success) return parsed.data
  throw new ToolResultError(id, `"attachments" are invalid: ${describeIssues(parsed.error)}`)
}
