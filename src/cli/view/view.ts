import type { TackleEvent } from "../../event/events.ts"
import type { Session } from "../../schema/session.ts"

/** View that shows the events of a run. */
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
 * Returns an object that distinguishes the events of subagents from those of the run. The first session seen is the
 * run's session. `agentOf` returns the agent name if the event belongs to a subagent.
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
