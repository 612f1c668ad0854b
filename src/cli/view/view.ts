import type { TackleEvent } from "../../event/events.ts"

/** Shows a run. */
export interface View {
  show(event: TackleEvent): void
  /** Pauses live drawing for a question. Returns the function that resumes it. */
  pause(): () => void
  /** Clears live drawing at the end of the run. */
  end(): void
}

/**
 * Distinguishes events of subagents from those of the run, whose session is the first one seen. Returns the agent name
 * of a subagent.
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
