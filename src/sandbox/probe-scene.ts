import type { RunningProcess } from "../util/process.ts"
import type { Surroundings } from "./probe-surroundings.ts"

/** One attempt to get out. What counts is what is seen outside, not what the attempt says. */
export interface Probe {
  id: string
  /** For people, such as `write a file outside of the project`. */
  attempt: string
  /** Rejects where the attempt could not be made. */
  run(scene: ProbeScene): Promise<ProbeOutcome>
}

/** What came of an attempt. `untested`: this machine lacks what it takes. */
export interface ProbeOutcome {
  outcome: "enforced" | "not enforced" | "untested"
  /** What was seen, where that says more. */
  detail?: string
}

/**
 * Where an attempt is made. `inside` may be written but for `protected`, cannot read `secret` and what lies in
 * `private`, and may not get `missing`; `outside` may only be read. The network is closed.
 */
export interface ProbeScene {
  inside: string
  outside: string
  surroundings: Surroundings
  start(text: string): Promise<RunningProcess>
  /** Runs a text for `sh` to its end; what it said. */
  run(text: string, env?: Record<string, string>): Promise<string>
  /** The same for a script of this very program. */
  node(script: string): Promise<string>
}

/** How long it is waited for something that should not arrive, in milliseconds. */
export const arrivalMs = 200

/** The outcome of an attempt that was made. */
export function held(enforced: boolean): ProbeOutcome {
  return { outcome: enforced ? "enforced" : "not enforced" }
}

/** The outcome of one that could not be made, and why. */
export function untested(detail: string): ProbeOutcome {
  return { outcome: "untested", detail }
}
