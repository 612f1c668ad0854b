import type { Writable } from "node:stream"
import type { View } from "./view.ts"

/** One event a line, nothing else, in the order in which they happened. */
export function createJsonView(output: Writable): View {
  return {
    show(event) {
      const { type, time, sessionID, ...rest } = event
      output.write(`${JSON.stringify({ type, time, sessionID, ...rest })}\n`)
    },
    pause: () => () => {},
    end() {},
  }
}
