import { join } from "node:path"
import type { ToolPart } from "../../src/schema/part.ts"
import { mayHaveActed } from "../../src/schema/tool-moves.ts"
import { eventsIn, inspect, wrongAfterCrash, wrongAtEnd } from "./inspect.ts"
import type { Moment } from "./moment.ts"
import { comesTrue, createPlace, type Place, processesIn } from "./place.ts"
import { loseUnsynced, stopMachine, underTrace } from "./power-cut.ts"
import { lastWords, prompt } from "./task.ts"

/** The result of one interrupted run. */
export interface Survival {
  moment: string
  /** True if the run ended before the moment. */
  missed: boolean
  /** Problems that were found. Empty if the run survived. */
  wrong: string[]
}

export const runArguments = ["run", "--auto", "--format", "json"]

export interface CrashOptions {
  /** Signal that ends the run. Default: `SIGKILL`. */
  signal?: NodeJS.Signals
  /** Sandbox of the commands. Default: `off`. */
  sandbox?: "off" | "auto"
  /** Simulates a power loss at the moment. `lost` is the share of the unsynced data that is lost, from 0 to 1. */
  powerCut?: { lost: number }
}

/** Interrupts one run at the moment, inspects the state that it left, continues the run and inspects the result. */
export async function crash(
  moment: Moment,
  { signal = "SIGKILL", sandbox = "off", powerCut }: CrashOptions = {},
): Promise<Survival> {
  await using place = await createPlace({ sandbox })
  await moment.prepare?.(place)
  const log = join(place.home, "trace.log")
  const run = place.start([...runArguments, prompt], powerCut ? underTrace(log) : moment.program)
  await moment.reached(place, run)
  const missed = run.child.exitCode !== null
  if (powerCut) stopMachine(place)
  run.child.kill(signal)
  await run.ended
  if (powerCut) loseUnsynced(place, log, powerCut.lost)
  moment.clear?.(place)
  const wrong = wrongAfterCrash(inspect(place.data), place, {
    stdout: run.said.stdout,
    isKept: powerCut ? isDurable : () => true,
  })
  wrong.push(...(await goOn(place)))
  await comesTrue(() => processesIn(place.directory).length === 0)
  wrong.push(...wrongAtEnd(inspect(place.data), place))
  return { moment: moment.name, missed, wrong }
}

/** Returns true for states that must survive a power loss: a call may have acted, or has a result. */
function isDurable({ tool, state }: ToolPart): boolean {
  if (state.status === "pending") return false
  return state.status === "running" ? mayHaveActed(state) : ["bash", "write", "edit", "task"].includes(tool)
}

/** Continues the run as a user would. Returns the problems, if any. */
export async function goOn(place: Place): Promise<string[]> {
  const began = inspect(place.data).sessions > 0
  const next = place.start([...runArguments, ...(began ? ["--continue"] : []), prompt])
  const { code, signal } = await next.ended
  const end = eventsIn(next.said.stdout).findLast(({ type }) => type === "run.completed")
  const text = end?.type === "run.completed" ? end.text : ""
  if (code === 0 && text === lastWords) return []
  const errors = eventsIn(next.said.stdout).flatMap((event) =>
    event.type === "session.error" ? [event.error.message] : [],
  )
  return [
    `the next start ended with ${code ?? signal}, "${text}": ${[...errors, next.said.stderr.trim()].join(" ")}`,
  ]
}
