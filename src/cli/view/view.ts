import type { TackleEvent } from "../../event/events.ts"

/** Shows a run to somebody. */
export interface View {
  show(event: TackleEvent): void
  /** Holds back what is drawn live, for a question. Returns the function that goes on. */
  pause(): () => void
  /** The run is over: clears what was drawn live. */
  end(): void
}
