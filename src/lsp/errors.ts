import { TackleError } from "../util/errors.ts"

/** No language server is available for the file. */
export class NoServerError extends TackleError {
  constructor(message: string) {
    super(message, { code: "lsp.unavailable", recoverable: true })
  }
}

/** The server ended during a request. It may be restarted. */
export class ServerEndedError extends TackleError {
  constructor(server: string, why: string) {
    super(`The language server ${server} ended: ${why}`, { code: "lsp.ended", recoverable: true })
  }
}

/** The server answered with an error, or does not support the request. */
export class ServerAnswerError extends TackleError {
  constructor(message: string, cause?: unknown) {
    super(message, { code: "lsp.answer", recoverable: true, cause })
  }
}
