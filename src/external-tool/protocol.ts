import * as z from "zod"
import { Attachment } from "../schema/tool-state.ts"
import { describeIssues } from "../tool/validate.ts"
import { TackleError } from "../util/errors.ts"
import { isRecord, parseJson } from "../util/json.ts"

/** The output of `--describe`: a JSON object. Unknown keys are ignored. */
export const Manifest = z.object({
  name: z.string(),
  description: z.string().trim().min(1),
  /** JSON Schema for the arguments. Its type is `object`. */
  parameters: z.record(z.string(), z.unknown()),
  /** Time limit for a call in milliseconds, excluding time spent waiting for the user's answers. */
  timeout: z.int().min(1).max(3_600_000).optional(),
})
export type Manifest = z.infer<typeof Manifest>

const Metadata = z.record(z.string(), z.unknown())

/** A line that the program writes. `id` is the call's id. */
const ToolLine = z.discriminatedUnion("type", [
  z.object({
    type: z.literal("metadata"),
    id: z.string(),
    title: z.string().optional(),
    metadata: Metadata.optional(),
  }),
  z.object({
    type: z.literal("ask"),
    id: z.string(),
    /** Id that the program chooses for the request. The reply contains this id. */
    ask: z.string(),
    permission: z.string().min(1),
    patterns: z.array(z.string()).min(1),
    always: z.array(z.string()).optional(),
    paths: z.array(z.string()).optional(),
    metadata: Metadata.optional(),
  }),
  z.object({
    type: z.literal("result"),
    id: z.string(),
    title: z.string().optional(),
    output: z.string(),
    metadata: Metadata.optional(),
    attachments: z.array(Attachment).optional(),
  }),
  z.object({ type: z.literal("error"), id: z.string(), message: z.string().min(1) }),
])
export type ToolLine = z.infer<typeof ToolLine>

/** A line that the program reads. The first line is the call. Each process executes one call. */
const HostLine = z.discriminatedUnion("type", [
  z.object({
    type: z.literal("call"),
    id: z.string(),
    arguments: z.record(z.string(), z.unknown()),
    context: z.object({
      sessionID: z.string(),
      messageID: z.string(),
      callID: z.string().optional(),
      agent: z.string(),
      /** The program's working directory, and the base for relative paths. */
      directory: z.string(),
      worktree: z.string(),
    }),
  }),
  z.object({
    type: z.literal("reply"),
    id: z.string(),
    ask: z.string(),
    allowed: z.boolean(),
    /** The reason for the refusal, for the model. */
    message: z.string().optional(),
  }),
  z.object({ type: z.literal("abort"), id: z.string(), reason: z.string() }),
])
export type HostLine = z.infer<typeof HostLine>

/**
 * Encodes a line, including the line break. Throws `ZodError` if the line is invalid, for example if the arguments are
 * not an object.
 */
export function encodeLine(line: HostLine): string {
  return `${JSON.stringify(HostLine.parse(line))}\n`
}

/** Parses a line from the program. Returns the problem if the line is invalid or its id is not `callID`. */
export function readToolLine(
  text: string,
  callID: string,
): { ok: true; line: ToolLine } | { ok: false; problem: string } {
  const parsed = parseJson(text)
  if (!parsed.ok) return { ok: false, problem: `it is not JSON (${shown(text)})` }
  if (!isRecord(parsed.value)) return { ok: false, problem: `it is not a JSON object (${shown(text)})` }
  const read = ToolLine.safeParse(parsed.value, { reportInput: true })
  if (!read.success) return { ok: false, problem: unfit(parsed.value, read.error) }
  if (read.data.id === callID) return { ok: true, line: read.data }
  return { ok: false, problem: `its id is ${shown(read.data.id)}, but the id of the call is "${callID}"` }
}

const types: readonly unknown[] = ToolLine.options.map((option) => option.shape.type.value)

function unfit(value: Record<string, unknown>, error: z.ZodError): string {
  if (types.includes(value.type)) return describeIssues(error)
  const { type } = value
  const problem =
    type === undefined
      ? "it has no type"
      : `its type is ${shown(typeof type === "string" ? type : JSON.stringify(type))}`
  return `${problem}; allowed types: ${types.join(", ")}`
}

/** Maximum number of characters of an invalid line that an error message shows. */
const shownLength = 120

function shown(text: string): string {
  return JSON.stringify(text.length > shownLength ? `${text.slice(0, shownLength)}…` : text)
}

/**
 * Thrown when an external tool cannot be copied or described, violates the protocol, exits without a result, or reports
 * an error.
 */
export class ExternalToolError extends TackleError {
  constructor(message: string, code: "protocol" | "ended" | "manifest" | "failed" | "copy") {
    super(message, { code: `external-tool.${code}`, recoverable: true })
  }
}
