import { TackleError } from "../../util/errors.ts"

/** A search that did not work. The text says why and what to do; it never holds the key. */
export class SearchError extends TackleError {
  constructor(message: string, cause?: unknown) {
    super(message, { code: "websearch.failed", recoverable: true, cause })
  }
}
