import type { TackleEvent } from "../../event/events.ts"
import type { Message } from "../../schema/message.ts"
import type { Session } from "../../schema/session.ts"
import { sumUsage } from "../../session/budget.ts"
import { currentTime } from "../../util/time.ts"
import { exitCode } from "../process/exit.ts"
import type { Output } from "../process/stdout.ts"

/** A view that shows a run's events. */
export interface View {
  show(event: TackleEvent): void
  /** Pauses live output for a question. Returns a function that resumes it. */
  pause(): () => void
  /** Shows which session the run continues. */
  continues(session: Session): void
  /** Shows the end of a run if the process exits during the run. Synchronous. */
  exited(code: number): void
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
  let running: { sessionID: string; since: number; messages: Map<string, Message> } | undefined

  function follow(event: TackleEvent): void {
    if (event.type === "run.completed") running = undefined
    else if (event.type === "message.created" || event.type === "message.updated") {
      const { message, sessionID, time } = event
      if (event.type === "message.created" && message.role === "user")
        running ??= { sessionID, since: time, messages: new Map() }
      running?.messages.set(message.id, message)
    }
  }

  function flush(): void {
    clearImmediate(timer)
    timer = undefined
    if (waiting.length === 0) return
    output.write(waiting.map(lineOf).join(""))
    waiting = []
  }

  return {
    show(event) {
      const isOwn = children.agentOf(event) === undefined
      if (!isOwn && event.type === "run.completed") return
      if (isOwn) follow(event)
      waiting.push(event)
      timer ??= setImmediate(flush)
    },
    pause: () => () => {},
    continues: () => {},
    exited(code) {
      if (!running) return
      const { sessionID, since } = running
      const messages = [...running.messages.values()]
      const status =
        code === exitCode.limit ? "limit" : code === exitCode.interrupted ? "interrupted" : "failed"
      const time = currentTime()
      waiting.push({
        ...{ type: "run.completed", time, sessionID, status, exitCode: code, text: "" },
        messageIDs: messages.filter(({ role }) => role === "user").map(({ id }) => id),
        usage: sumUsage(messages.filter((message) => message.role === "assistant")),
        refused: [],
        durationMs: time - since,
      })
      flush()
    },
    end: async () => flush(),
  }
}

function lineOf({ type, time, sessionID, ...rest }: TackleEvent): string {
  return `${JSON.stringify({ type, time, sessionID, ...rest })}\n`
}
