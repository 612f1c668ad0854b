import type { Context } from "hono"
import { HTTPException } from "hono/http-exception"
import { errorMessage, TackleError, UsageError } from "../util/errors.ts"

/** Properties of a {@link ServerError}. */
export interface ServerErrorOptions {
  status: number
  code: string
  details?: unknown
  headers?: Readonly<Record<string, string>>
}

/** An error response of the API, with its HTTP status. */
export class ServerError extends TackleError {
  readonly status: number
  readonly details: unknown
  readonly headers: Readonly<Record<string, string>>
  constructor(message: string, { status, code, details, headers = {} }: ServerErrorOptions) {
    super(message, { code, recoverable: false })
    this.status = status
    this.details = details
    this.headers = headers
  }
}

/** Returns the error for a resource that does not exist. */
export function notFound(kind: "session" | "request" | "input" | "tool" | "grant", id: string): ServerError {
  const text = `The ${kind} ${JSON.stringify(id)} does not exist.`
  return new ServerError(text, { status: 404, code: `${kind}.unknown` })
}

/** The body of every error. */
export interface ErrorBody {
  error: { code: string; message: string; details?: unknown }
}

/**
 * Returns the response for an error. Unexpected errors are reported to `onProblem`, and the client receives no details
 * about them.
 */
export function errorResponse(c: Context, error: unknown, onProblem: (error: unknown) => void): Response {
  const { status, code, message, details, headers } = describe(error)
  if (status === 500) onProblem(error)
  for (const [name, value] of Object.entries(headers ?? {})) c.header(name, value)
  const body: ErrorBody = { error: { code, message, ...(details !== undefined && { details }) } }
  return c.json(body, status as 500)
}

function describe(error: unknown): ServerErrorOptions & { message: string } {
  if (error instanceof ServerError) return error
  if (error instanceof HTTPException) return fromHono(error)
  // Deeply nested values can be parsed but not serialized.
  if (error instanceof RangeError && /call stack/.test(error.message))
    return { status: 400, code: "json.invalid", message: "The body is nested too deeply." }
  if (!TackleError.isInstance(error)) {
    return { status: 500, code: "internal", message: "An internal error occurred. See the server's log." }
  }
  const { code } = error
  return { status: statusOf(error), code, message: errorMessage(error) }
}

/** Errors that Hono itself throws: invalid JSON and an unsupported content type. */
function fromHono({ status, message }: HTTPException): ServerErrorOptions & { message: string } {
  if (status === 415) return unsupportedType()
  if (/malformed json/i.test(message))
    return { status: 400, code: "json.invalid", message: "The body is not valid JSON." }
  return { status, code: "request.invalid", message: message || "The request is not valid." }
}

/** Returns the error for a body that is not sent as JSON. */
export function unsupportedType(): ServerError {
  return new ServerError("Send the body as JSON with the header `content-type: application/json`.", {
    status: 415,
    code: "content-type.unsupported",
  })
}

const statuses: Readonly<Record<string, number>> = {
  "session.busy": 409,
  "session.held": 409,
  "session.undo": 409,
  "session.compaction": 409,
  "input.conflict": 409,
  "input.ended": 409,
  aborted: 409,
  "engine.closed": 503,
}

function statusOf(error: TackleError): number {
  const { code } = error
  const known = statuses[code]
  if (known !== undefined) return known
  if (code.endsWith(".unknown")) return 404
  // `instanceof` does not work across bundles, but the classes of this process are from one bundle.
  if (error instanceof UsageError || code === "usage") return 400
  return code.startsWith("provider.") || code.startsWith("mcp.") ? 502 : 500
}
