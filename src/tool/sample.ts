import type { Tokens } from "../schema/part.ts"

/**
 * Asks the session's model for one answer, without tools. Throws `UsageError` where the run has no room for it, and what
 * asking the model throws.
 */
export type Sample = (request: SampleRequest) => Promise<SampleResult>

/** What the session's model is asked beside the session. */
export interface SampleRequest {
  system?: string
  messages: readonly SampleMessage[]
  /** Of the answer, in tokens. */
  maxOutputTokens: number
  temperature?: number
  signal: AbortSignal
}

/** A message of a {@link SampleRequest}. */
export interface SampleMessage {
  role: "user" | "assistant"
  text: string
}

/** What it said. `cut`: the answer was longer. */
export interface SampleResult {
  text: string
  /** The model's own name. */
  model: string
  cut: boolean
  /** What it took of the session's model, in tokens and US dollars. Absent where it was somebody else's. */
  spent?: { tokens: Tokens; cost: number }
}
