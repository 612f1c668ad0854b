/**
 * Runs a subagent to its end. It may never do what the session that starts it may not. Throws for an agent or session
 * that cannot be used; everything that happens to the subagent itself is a result.
 */
export type Spawn = (request: SpawnRequest) => Promise<SubagentResult>

/** What a subagent is given to do. */
export interface SpawnRequest {
  /** Name of the agent that works. */
  agent: string
  /** All that it is told. */
  prompt: string
  /** The work in a few words, for people. */
  description: string
  /** Goes on with this child session instead of beginning one. */
  sessionID?: string
  /** Fires to end it, and everything it started. */
  signal: AbortSignal
  /** Hears of the subagent's calls as they begin and end. */
  onProgress(progress: SubagentProgress): void
}

/** What a subagent is doing. */
export interface SubagentProgress {
  sessionID: string
  /** Its calls so far. */
  count: number
  /** The last of them, oldest first, as they stand. */
  calls: { tool: string; title: string; status: "pending" | "running" | "completed" | "error" }[]
}

/** How a subagent ended. `limit`: a budget of time, steps or tokens ran out, and `text` is what it had by then. */
export interface SubagentResult {
  sessionID: string
  status: "completed" | "failed" | "limit" | "interrupted"
  /** Its last words; empty where it said nothing. */
  text: string
  /** Why it did not complete. */
  cause?: string
  /** Calls that it made. */
  count: number
  durationMs: number
}
