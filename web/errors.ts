import { ClientError } from "../src/client/errors.ts"

/** Returns the text of an error for the user, with what to do next. */
export function errorText(error: unknown): string {
  if (!(error instanceof ClientError)) return error instanceof Error ? error.message : String(error)
  switch (error.code) {
    case "client.unreachable":
      return "The server does not answer. Check that `tackle serve` runs, and try again."
    case "token.invalid":
      return "The login has ended. Open a new link from `tackle web`."
    case "scope.insufficient":
      return `${error.message} Log in with a token of a wider scope.`
    default:
      return error.message
  }
}
