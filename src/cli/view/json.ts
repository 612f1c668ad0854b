import type { TackleEvent } from "../../event/events.ts"
import type { Output } from "../process/stdout.ts"
import type { View } from "./view.ts"
import { createChildren } from "./view.ts"

/**
 * One event a line, nothing else, in the order in which they happened. Those of subagents are among them, but for their
 * `run.completed`: the last line is the end of the run, and the only one of its type. Lines of one turn of the event
 * loop leave in one write, which costs more than a line, and are written after all that the engine does in that turn.
 */
export function createJsonView(output: Output): View {
  const children = createChildren()
  let waiting: TackleEvent[] = []
  let timer: NodeJS.Immediate | undefined

  function flush(): void {
    clearImmediate(timer)
    timer = undefined
    if (waiting.length === 0) return
    output.write(waiting.map(lineOf).join(""))
    waiting = []
  }

  return {
    show(event) {
      if (children.agentOf(event) !== undefined && event.type === "run.completed") return
      waiting.push(event)
      timer ??= setImmediate(flush)
    },
    pause: () => () => {},
    end: flush,
  }
}

function lineOf({ type, time, sessionID, ...rest }: TackleEvent): string {
  return `${JSON.stringify({ type, time, sessionID, ...rest })}\n`
}
