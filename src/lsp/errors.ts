import { TackleError } from "../util/errors.ts"

/** Thrown when no language server is available for a file. */
export class NoServerError extends TackleError {
  constructor(message: string) {
    super(message, { code: "lsp.unavailable", recoverable: true })
  }
}

/** Thrown when a server ends during a request. The server may be restarted. */
export class ServerEndedError extends TackleError {
  constructor(server: string, why: string) {
    super(`The language server ${server} ended: ${why}`, { code: "lsp.ended", recoverable: true })
  }
}

/** Thrown when a server responds with an error or does not support the request. */
export class ServerAnswerError extends TackleError {
  constructor(message: string, cause?: unknown) {
    super(message, { code: "lsp.answer", recoverable: true, cause })
  }
}
