import type { Output } from "../stdout.ts"
import { createChildren } from "./children.ts"
import type { View } from "./view.ts"

/**
 * One event a line, nothing else, in the order in which they happened. Those of subagents are among them, but for their
 * `run.completed`: the last line is the end of the run, and the only one of its type. Lines of one turn of the event loop leave in one
 * write: a write costs more than a line.
 */
export function createJsonView(output: Output): View {
  const children = createChildren()
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
      if (children.agentOf(event) !== undefined && event.type === "run.completed") return
      const { type, time, sessionID, ...rest } = event
      waiting += `${JSON.stringify({ type, time, sessionID, ...rest })}\n`
      timer ??= setImmediate(flush)
    },
    pause: () => () => {},
    end: flush,
  }
}
