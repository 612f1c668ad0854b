/** Properties of a {@link ClientError}. */
export interface ClientErrorOptions {
  /** Code of the server's error, or of an error in the client, such as `client.unreachable` or `aborted`. */
  code: string
  /** HTTP status. Undefined if no response arrived. */
  status?: number
  details?: unknown
  cause?: unknown
}

const marker = Symbol.for("tackle.error")

/**
 * An error from the server, the connection or the client. A library error that the server reports keeps its code, such
 * as `input.conflict`. The library's `TackleError.isInstance` returns true for a `ClientError`.
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

/** Returns an aborted signal's reason if it is a Tackle error. Wraps any other reason in a {@link ClientError}. */
export function abortReason({ reason }: AbortSignal): Error {
  if (typeof reason === "object" && reason !== null && marker in reason) return reason as Error
  return new ClientError("The request was aborted before it finished.", { code: "aborted", cause: reason })
}
