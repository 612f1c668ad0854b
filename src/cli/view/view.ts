import type { TackleEvent } from "../../event/events.ts"

/** Shows a run to somebody. */
export interface View {
  show(event: TackleEvent): void
  /** Holds back what is drawn live, for a question. Returns the function that goes on. */
  pause(): () => void
  /** The run is over: clears what was drawn live. */
  end(): void
}

/**
 * Tells the events of subagents from the run's own. The run's session is the first that is heard of; of the others the
 * name of the agent is given.
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
