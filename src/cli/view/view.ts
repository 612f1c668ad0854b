import type { TackleEvent } from "../../event/events.ts"
import type { Session } from "../../schema/session.ts"
import type { Output } from "../process/stdout.ts"

/** A view that shows a run's events. */
export interface View {
  show(event: TackleEvent): void
  /** Pauses live output for a question. Returns a function that resumes it. */
  pause(): () => void
  /** Shows which session the run continues. */
  continues(session: Session): void
  /** Shows events that were held back, and clears live output at the end of the run. */
  end(): Promise<void>
}

/**
 * Returns an object that distinguishes events from subagents from the run's own events. The first session seen is the
 * run's session. `agentOf` returns the subagent's agent name, or undefined for one of the run's own events.
 */
export function createChildren(): { agentOf(event: TackleEvent): string | undefined } {
  const agents = new Map<string, string>()
  let own: string | undefined

  return {
    agentOf(event) {
      own ??= event.sessionID
      if (event.sessionID === own) return undefined
      if (event.type === "session.created" || event.type === "session.updated")
        agents.set(event.sessionID, event.session.agent)
      return agents.get(event.sessionID) ?? "subagent"
    },
  }
}

/**
 * Creates a view that prints one event per line, in order. Includes events from subagents except their `run.completed`,
 * which readers would mistake for the end of the run. Batches the lines of one event-loop turn into a single write,
 * because a write costs more than a line.
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
