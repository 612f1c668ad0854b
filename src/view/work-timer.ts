import type { SessionState } from "./session-state.ts"

type WorkState = Pick<SessionState, "isRunning" | "requests" | "questions">

/** Measures how long a run has worked, without the time that it waited for the user. */
export interface WorkTimer {
  /** Receives the latest state of the session, or undefined if no session is open. */
  update(state: WorkState | undefined): void
  /** Returns the time of the current run, or of the latest one, in milliseconds. */
  elapsed(): number
}

/** Creates a timer. `now` returns the time in milliseconds. */
export function createWorkTimer(now: () => number = Date.now): WorkTimer {
  let isRunning = false
  let worked = 0
  /** Time since which the run works, or undefined while it waits or is over. */
  let since: number | undefined
  const elapsed = () => (since === undefined ? worked : worked + now() - since)
  return {
    elapsed,
    update(state) {
      const starts = state?.isRunning === true && !isRunning
      isRunning = state?.isRunning === true
      const isWorking = isRunning && state?.requests.length === 0 && state.questions.length === 0
      worked = starts ? 0 : elapsed()
      since = isWorking ? now() : undefined
    },
  }
}
