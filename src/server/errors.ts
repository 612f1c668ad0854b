import type { Context } from "hono"
import { HTTPException } from "hono/http-exception"
import { adviceForSeveral, UndoRefusedError } from "../files/put-back.ts"
import { SessionExistsError } from "../session/archive.ts"
import { TenantLimitError } from "../store/tenants.ts"
import { errorMessage, TackleError, UsageError } from "../util/errors.ts"

/** Error codes that routes can return, by HTTP status. */
const codes = {
  400: [
    "request.invalid",
    "json.invalid",
    "directory.invalid",
    "input.id",
    "input.empty",
    "agent.unknown",
    "session.archive",
    "call.failed",
    "usage",
    "model.not-found",
    "model.no-key",
    "model.package",
  ],
  401: ["token.invalid", "ticket.invalid"],
  403: [
    "scope.insufficient",
    "directory.forbidden",
    "host.forbidden",
    "origin.forbidden",
    "permission.denied",
    "tenant.forbidden",
  ],
  404: [
    "session.unknown",
    "message.unknown",
    "input.unknown",
    "request.unknown",
    "tool.unknown",
    "grant.unknown",
    "route.unknown",
  ],
  405: ["method.unsupported"],
  409: [
    "session.busy",
    "session.held",
    "session.exists",
    "session.undo",
    "session.nothing-to-undo",
    "session.compaction",
    "input.conflict",
    "input.ended",
    "request.answered",
    "aborted",
  ],
  413: ["body.too-large"],
  415: ["content-type.unsupported"],
  429: ["token.busy", "tenant.sessions", "tenant.queue", "tenant.tokens", "tenant.cost"],
  503: ["server.busy", "server.stopping", "engine.closed"],
} as const

/** An API error code. */
export type ErrorCode = (typeof codes)[keyof typeof codes][number]

const statuses = new Map<string, number>(
  Object.entries(codes).flatMap(([status, each]) => each.map((code) => [code, Number(status)] as const)),
)

/**
 * Returns the HTTP status of an error code. Codes that the API does not define have the status 502 if they come from
 * providers or MCP servers, and otherwise 500.
 */
export function statusOf(code: string): number {
  const known = statuses.get(code)
  if (known !== undefined) return known
  return code.startsWith("provider.") || code.startsWith("mcp.") ? 502 : 500
}

/** Properties of a {@link ServerError}. */
interface ServerErrorOptions {
  code: ErrorCode
  details?: unknown
  headers?: Readonly<Record<string, string>>
}

/** An API error response. Its code determines the HTTP status. */
export class ServerError extends TackleError {
  readonly details: unknown
  readonly headers: Readonly<Record<string, string>>
  constructor(message: string, { code, details, headers = {} }: ServerErrorOptions) {
    super(message, { code, recoverable: false })
    this.details = details
    this.headers = headers
  }
}

/** Returns the error for a resource that does not exist. */
export function notFound(
  kind: "session" | "message" | "request" | "input" | "tool" | "grant",
  id: string,
): ServerError {
  return new ServerError(`The ${kind} ${JSON.stringify(id)} does not exist.`, { code: `${kind}.unknown` })
}

/** The body of every error response. */
export interface ErrorBody {
  error: { code: string; message: string; details?: unknown }
}

/** An error as the client receives it. */
interface Shown {
  status: number
  code: string
  message: string
  details?: unknown
  headers?: Readonly<Record<string, string>>
}

/**
 * Returns the response for an error. Errors with status 500 are reported to `onProblem`. The client receives no details
 * about errors that are not Tackle errors.
 */
export function errorResponse(c: Context, error: unknown, onProblem: (error: unknown) => void): Response {
  const { status, code, message, details, headers } = describe(error)
  if (status === 500) onProblem(error)
  for (const [name, value] of Object.entries(headers ?? {})) c.header(name, value)
  const body: ErrorBody = { error: { code, message, details } }
  return c.json(body, status as 500)
}

function describe(error: unknown): Shown {
  if (error instanceof HTTPException) return fromHono(error)
  // Deeply nested values can be parsed but not serialized.
  if (error instanceof RangeError && /call stack/.test(error.message))
    return { status: 400, code: "json.invalid", message: "The body is nested too deeply." }
  if (!TackleError.isInstance(error)) {
    return { status: 500, code: "internal", message: "An internal error occurred. See the server's log." }
  }
  const { code } = error
  const status = statusOf(code)
  const message = errorMessage(error)
  if (error instanceof ServerError)
    return { status, code, message, details: error.details, headers: error.headers }
  if (error instanceof TenantLimitError)
    return { status, code, message, headers: { "retry-after": String(error.retryAfterSeconds) } }
  if (error instanceof UndoRefusedError) return { status, code, ...undoRefused(error) }
  if (error instanceof SessionExistsError)
    return {
      status,
      code,
      message: `Session ${error.id} already exists. Send {"copy": true} to import it with new ids, or delete the existing session first.`,
    }
  // `instanceof` does not work across bundles, but the classes of this process are from one bundle.
  return { status: status === 500 && error instanceof UsageError ? 400 : status, code, message }
}

/** Returns the message and details for clients, because the error's own message refers to command-line flags. */
function undoRefused({ summary, refused, turns }: UndoRefusedError): Pick<Shown, "message" | "details"> {
  const advice =
    turns > 1
      ? adviceForSeveral
      : 'Check these files first. Send {"others": true} to restore only the other files, if any, or {"skip": true} to change no file but count the turn as undone or redone.'
  return { message: `${summary}\n${advice}`, details: { files: refused } }
}

/** Converts an error that Hono itself throws: for invalid JSON, or for an unsupported content type. */
function fromHono({ status, message }: HTTPException): Shown {
  if (status === 415) return describe(unsupportedType())
  if (/malformed json/i.test(message))
    return { status: 400, code: "json.invalid", message: "The body is not valid JSON." }
  return { status, code: "request.invalid", message: message || "The request is not valid." }
}

/** Returns the error for a body that is not sent as JSON. */
export function unsupportedType(): ServerError {
  return new ServerError(
    "The body is not sent as JSON. Send it with the header `content-type: application/json`.",
    {
      code: "content-type.unsupported",
    },
  )
}
