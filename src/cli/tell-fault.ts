import { errorMessage } from "../util/errors.ts"
import { warn } from "./notice.ts"
import type { Place } from "./place.ts"

/** Notes a fault in the log and on stderr. Returns what was shown. */
export function tellFault(place: Place, message: string, error: unknown): string {
  place.log.write("error", message, { error: errorMessage(error) })
  const text = place.hide(`${message}: ${errorMessage(error)}`)
  warn(text)
  return text
}
