import type { TackleEvent } from "../../event/events.ts"
import type { Output } from "../process/stdout.ts"
import type { View } from "./view.ts"
import { createChildren } from "./view.ts"

/**
 * Creates a view that prints one event per line, in order. Events of subagents are included except `run.completed`, so
 * that the last line is the end of the run and the only one of its type. The lines of one turn of the event loop are
 * written at once at its end, since a write costs more than a line.
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
