import { toProviderError } from "../model/provider-error.ts"
import { AbortedError, TimeoutError } from "../util/abort.ts"
import { causeCode, errorMessage, TackleError } from "../util/errors.ts"
import { isRecord, parseJson } from "../util/json.ts"

/** Details of an error that the client receives. */
interface GatewayErrorDetails {
  /** HTTP status. */
  status: number
  /** Error code. Uses OpenAI's code if OpenAI defines one. */
  label: string
  /** Error type from the upstream. Default: OpenAI's type for the status. */
  type?: string | undefined
  /** Invalid request field, such as `messages.0.role`. */
  param?: string | undefined
  /** Response headers, such as `retry-after`. */
  headers?: Record<string, string>
  /** Original error, for debugging. The client does not receive it. */
  cause?: unknown
}

/** An error that is sent to the client instead of an answer, or at the end of an incomplete answer. */
export class GatewayError extends TackleError {
  readonly status: number
  readonly label: string
  readonly type: string | undefined
  readonly param: string | undefined
  readonly headers: Record<string, string>
  constructor(message: string, { status, label, type, param, headers = {}, cause }: GatewayErrorDetails) {
    super(message, { code: `gateway.${label.replaceAll("_", "-")}`, recoverable: false, cause })
    this.status = status
    this.label = label
    this.type = type
    this.param = param
    this.headers = headers
  }
}

/** Returns the error in the format of OpenAI's API. */
export function errorBody({ message, status, label, type, param = null }: GatewayErrorFields): object {
  const byStatus =
    status === 429 ? "rate_limit_error" : status >= 500 ? "server_error" : "invalid_request_error"
  return { error: { message, type: type ?? byStatus, param, code: label } }
}

/** The fields of an error that the client receives. */
export type GatewayErrorFields = Pick<GatewayError, "message" | "status" | "label"> & {
  type?: string | undefined
  param?: string | null | undefined
}

/**
 * Converts an error from an upstream request. Returns a `GatewayError` unchanged. If the upstream sent an error, uses
 * the status, message, code, type and field of that error. Otherwise, the status is 400 if the Chat Completions API
 * cannot express the request, 503 if the gateway is closing, 504 if the upstream sent no content for too long, and 502
 * if the connection to the upstream failed or its answer could not be read.
 */
export function toGatewayError(error: unknown): GatewayError {
  if (error instanceof GatewayError) return error
  if (error instanceof TimeoutError)
    return new GatewayError(error.message, { status: 504, label: "upstream_timeout", cause: error })
  if (error instanceof AbortedError)
    return new GatewayError("The gateway is closing.", { status: 503, label: "closing", cause: error })
  const fields = isRecord(error) ? error : {}
  if (fields.name === "AI_UnsupportedFunctionalityError")
    return new GatewayError(`The Chat Completions API cannot express the request: ${errorMessage(error)}`, {
      status: 400,
      label: "unsupported_content",
      cause: error,
    })
  const { statusCode, responseBody } = fields
  if (typeof statusCode === "number" && statusCode >= 400) {
    const said = typeof responseBody === "string" ? ownWords(responseBody) : undefined
    return new GatewayError(said?.message ?? `The upstream returned status ${statusCode}.`, {
      ...said,
      status: statusCode,
      label: isTooLong(error) ? tooLong : (said?.code ?? "upstream_error"),
      headers: retryAfter(fields.responseHeaders),
      cause: error,
    })
  }
  if (!(error instanceof Error) && typeof fields.message === "string") {
    // An error object in the middle of a stream.
    const said = errorFields(fields)
    const status = Number(said.code) >= 400 && Number(said.code) < 600 ? Number(said.code) : 502
    return new GatewayError(fields.message, {
      ...said,
      status,
      label: said.code ?? "upstream_error",
      cause: error,
    })
  }
  const code = causeCode(error, /^E[A-Z]+$/)
  if (code !== undefined) {
    return new GatewayError(
      `The connection to the upstream failed (${code}). Check that the server is running and that --upstream is its address.`,
      {
        status: 502,
        label: "upstream_unreachable",
        cause: error,
      },
    )
  }
  return new GatewayError(`Cannot read the upstream's answer: ${errorMessage(error)}`, {
    status: 502,
    label: "upstream_bad_answer",
    cause: error,
  })
}

/**
 * OpenAI's code for a request that exceeds the model's context window. Clients that receive this code shorten their
 * history.
 */
export const tooLong = "context_length_exceeded"

function isTooLong(error: unknown): boolean {
  return toProviderError(error, { providerID: "", modelID: "" }).kind === "context-overflow"
}

/** The parts of an upstream's error that the client receives. */
interface UpstreamError {
  message?: string | undefined
  code?: string | undefined
  type?: string | undefined
  param?: string | undefined
}

/** Returns the error that the body of an upstream response contains. */
function ownWords(body: string): UpstreamError {
  const { value } = { value: undefined, ...parseJson(body) }
  if (!isRecord(value)) return { message: body.slice(0, longestText) || undefined }
  const inner = isRecord(value.error) ? value.error.message : (value.error ?? value.message ?? value.detail)
  const message = typeof inner === "string" ? inner : body.slice(0, longestText)
  return { ...errorFields(isRecord(value.error) ? value.error : value), message }
}

/** Returns the code, type and field of an error object. */
function errorFields({ code, type, param }: Record<string, unknown>): UpstreamError {
  const text = (value: unknown) => (typeof value === "string" && value !== "" ? value : undefined)
  return { code: typeof code === "number" ? String(code) : text(code), type: text(type), param: text(param) }
}

function retryAfter(headers: unknown): Record<string, string> {
  const value = isRecord(headers) ? headers["retry-after"] : undefined
  return typeof value === "string" ? { "retry-after": value } : {}
}

/** Maximum length of an error message in characters. Proxy error pages can be very long. */
const longestText = 2_000
