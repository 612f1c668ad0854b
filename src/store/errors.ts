import { TackleError } from "../util/errors.ts"

/** The database could not be opened, read or written. The message names the file and the next move. */
export class StoreError extends TackleError {
  constructor(message: string, cause?: unknown) {
    super(message, { code: "store", recoverable: false, cause })
  }
}
