import type { TackleEvent } from "../../event/events.ts"
import type { Output } from "../process/stdout.ts"
import type { View } from "./view.ts"
import { createChildren } from "./view.ts"

/**
 * Creates a view that prints one event per line, in order. Includes the events of subagents except their
 * `run.completed`, so that this event occurs only once and always on the last line. Batches the lines of one event-loop
 * turn into a single write, because a write costs more than a line.
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
    continues: () => {},
    end: async () => flush(),
  }
}

function lineOf({ type, time, sessionID, ...rest }: TackleEvent): string {
  return `${JSON.stringify({ type, time, sessionID, ...rest })}\n`
}
