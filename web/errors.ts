import { ClientError } from "../src/client/errors.ts"
import { isRecord } from "../src/util/json.ts"

/** Returns the text of an error for the user. For some errors of the client and the server, adds the next step. */
export function errorText(error: unknown): string {
  if (!(error instanceof ClientError)) return error instanceof Error ? error.message : String(error)
  switch (error.code) {
    case "client.unreachable":
      return "The server does not respond. Check that `tackle serve` is running, and try again."
    case "token.invalid":
      return "Your login is no longer valid. Open a new link from `tackle web`."
    case "scope.insufficient":
      return `${error.message} Log in with a token that has a wider scope.`
    case "session.undo":
      // If the message has several lines, the last line names fields of the API.
      return error.message.replace(/\n[^\n]*$/, "")
    default:
      return error.message
  }
}

/** Returns true if an undo or redo failed because of some files. The user can then restore the other files. */
export function isUndoRefused(error: unknown): boolean {
  if (!(error instanceof ClientError) || error.code !== "session.undo") return false
  return isRecord(error.details) && "files" in error.details
}
