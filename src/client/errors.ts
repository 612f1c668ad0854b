/** Properties of a {@link ClientError}. */
export interface ClientErrorOptions {
  /** Code of the server's error, or a code of the client that starts with `client.`. */
  code: string
  /** HTTP status. Undefined if no response arrived. */
  status?: number
  details?: unknown
  cause?: unknown
}

const marker = Symbol.for("tackle.error")

/**
 * An error of the server or the connection. `code` is the code that the library's error has, such as `input.conflict`.
 * `TackleError.isInstance` of the library accepts it.
 */
export class ClientError extends Error {
  override readonly name = "ClientError"
  readonly code: string
  readonly recoverable = false
  readonly status: number | undefined
  /** Data in addition to the message, such as the first reply to a request. */
  readonly details: unknown
  readonly [marker] = true

  constructor(message: string, { code, status, details, cause }: ClientErrorOptions) {
    super(message, cause === undefined ? undefined : { cause })
    this.code = code
    this.status = status
    this.details = details
  }
}

/** Returns the reason of a signal if it is an error of Tackle. Wraps any other reason. */
export function abortReason({ reason }: AbortSignal): Error {
  if (typeof reason === "object" && reason !== null && marker in reason) return reason as Error
  return new ClientError("The request was aborted before it finished.", { code: "aborted", cause: reason })
}
