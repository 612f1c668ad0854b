import type { Output } from "../stdout.ts"
import type { View } from "./view.ts"

/**
 * One event a line, nothing else, in the order in which they happened. Lines of one turn of the event loop leave in one
 * write: a write costs more than a line.
 */
export function createJsonView(output: Output): View {
  let waiting = ""
  let timer: NodeJS.Immediate | undefined

  function flush(): void {
    clearImmediate(timer)
    timer = undefined
    if (waiting === "") return
    output.write(waiting)
    waiting = ""
  }

  return {
    show(event) {
      const { type, time, sessionID, ...rest } = event
      waiting += `${JSON.stringify({ type, time, sessionID, ...rest })}\n`
      timer ??= setImmediate(flush)
    },
    pause: () => () => {},
    end: flush,
  }
}
