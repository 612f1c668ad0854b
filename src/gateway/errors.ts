import { AbortedError, TimeoutError } from "../util/abort.ts"
import { errorMessage, systemCode, TackleError } from "../util/errors.ts"
import { isRecord, parseJson } from "../util/json.ts"

/** What the client is told of an error beside its text. */
interface GatewayFault {
  /** HTTP status of the answer. */
  status: number
  /** For programs: OpenAI's own word where it has one. */
  label: string
  /** The part of the request that is wrong, such as `messages.0.role`. */
  param?: string
  /** Sent with the answer, such as `retry-after`. */
  headers?: Record<string, string>
  /** For whoever debugs the gateway: the client is not told of it. */
  cause?: unknown
}

/** Why a request of the gateway is not answered. */
export class GatewayError extends TackleError {
  readonly status: number
  readonly label: string
  readonly param: string | undefined
  readonly headers: Record<string, string>
  constructor(message: string, { status, label, param, headers = {}, cause }: GatewayFault) {
    super(message, { code: `gateway.${label.replaceAll("_", "-")}`, recoverable: false, cause })
    this.status = status
    this.label = label
    this.param = param
    this.headers = headers
  }
}

/** The error as OpenAI's API writes it. */
export function errorBody({ message, status, label, param = null }: GatewayErrorFields): object {
  const type = status === 429 ? "rate_limit_error" : status >= 500 ? "server_error" : "invalid_request_error"
  return { error: { message, type, param, code: label } }
}

type GatewayErrorFields = Pick<GatewayError, "message" | "status" | "label"> & {
  param?: string | null | undefined
}

/**
 * Sorts what was thrown while the upstream was asked. An error status of the upstream stays, with its text; 504 is a
 * silence, 502 everything else that its answer or its absence can do wrong.
 */
export function toGatewayError(error: unknown): GatewayError {
  if (error instanceof GatewayError) return error
  if (error instanceof TimeoutError)
    return new GatewayError(error.message, { status: 504, label: "upstream_timeout", cause: error })
  if (error instanceof AbortedError)
    return new GatewayError("The gateway is closing.", { status: 503, label: "closing", cause: error })
  const fields = isRecord(error) ? error : {}
  const { statusCode, responseBody } = fields
  if (typeof statusCode === "number" && statusCode >= 400) {
    const said = typeof responseBody === "string" ? ownWords(responseBody) : undefined
    return new GatewayError(said ?? `The upstream answered with status ${statusCode}.`, {
      status: statusCode,
      label: "upstream_error",
      headers: retryAfter(fields.responseHeaders),
      cause: error,
    })
  }
  const code = deepestCode(error)
  if (code !== undefined) {
    return new GatewayError(`The upstream cannot be reached (${code}). Check --upstream and that it runs.`, {
      status: 502,
      label: "upstream_unreachable",
      cause: error,
    })
  }
  return new GatewayError(`The upstream's answer cannot be read: ${errorMessage(error)}`, {
    status: 502,
    label: "upstream_bad_answer",
    cause: error,
  })
}

/** The text of an error in the upstream's answer. */
function ownWords(body: string): string | undefined {
  const { value } = { value: undefined, ...parseJson(body) }
  if (!isRecord(value)) return body.slice(0, longestText) || undefined
  const inner = isRecord(value.error) ? value.error.message : (value.error ?? value.message ?? value.detail)
  return typeof inner === "string" ? inner : body.slice(0, longestText)
}

function retryAfter(headers: unknown): Record<string, string> {
  const value = isRecord(headers) ? headers["retry-after"] : undefined
  return typeof value === "string" ? { "retry-after": value } : {}
}

/** The system's code of the error or of what caused it. */
function deepestCode(error: unknown): string | undefined {
  let current = error
  for (let depth = 0; depth < 5 && current instanceof Error; depth++) {
    const code = systemCode(current)
    if (code !== undefined && /^E[A-Z]+$/.test(code)) return code
    current = current.cause
  }
  return undefined
}

/** In characters: a proxy's error page is longer than anyone reads. */
const longestText = 2_000
