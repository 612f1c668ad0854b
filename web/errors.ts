import { ClientError } from "../src/client/errors.ts"
import { isRecord } from "../src/util/json.ts"

/** Returns the text of an error for the user. For some errors from the client and the server, adds the next step. */
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
      // If the message has several lines, the last line names API fields.
      return error.message.replace(/\n[^\n]*$/, "")
    default:
      return error.message
  }
}

/** Returns the number of files that prevent an undo or redo, or 0 for other errors. */
export function refusedFiles(error: unknown): number {
  if (!(error instanceof ClientError) || error.code !== "session.undo") return 0
  return isRecord(error.details) && Array.isArray(error.details.files) ? error.details.files.length : 0
}
