import { TackleError } from "../util/errors.ts"

/** No language server can answer for the file. */
export class NoServerError extends TackleError {
  constructor(message: string) {
    super(message, { code: "lsp.unavailable", recoverable: true })
  }
}

/** The server ended while it was needed. Another one may be started. */
export class ServerEndedError extends TackleError {
  constructor(server: string, why: string) {
    super(`The language server ${server} ended: ${why}`, { code: "lsp.ended", recoverable: true })
  }
}

/** The server answered with an error, or does not know the request. */
export class ServerAnswerError extends TackleError {
  constructor(message: string, cause?: unknown) {
    super(message, { code: "lsp.answer", recoverable: true, cause })
  }
}
