import { eventsIn, inspect, wrongAfterCrash, wrongAtEnd } from "./inspect.ts"
import type { Moment } from "./moment.ts"
import { comesTrue, createPlace, type Place, processesIn } from "./place.ts"
import { lastWords, prompt } from "./task.ts"

/** What became of one run that was cut off. */
export interface Survival {
  moment: string
  /** The run had ended before its moment came. */
  missed: boolean
  /** Nothing: it was survived. */
  wrong: string[]
}

export const runArguments = ["run", "--auto", "--format", "json"]

/** Cuts one run off at the moment, looks at what it left, goes on with it and looks at the end. */
export async function crash(
  moment: Moment,
  { signal = "SIGKILL", sandbox = "off" }: { signal?: NodeJS.Signals; sandbox?: "off" | "auto" } = {},
): Promise<Survival> {
  await using place = await createPlace({ sandbox })
  await moment.prepare?.(place)
  const run = place.start([...runArguments, prompt])
  await moment.reached(place, run)
  const missed = run.child.exitCode !== null
  run.child.kill(signal)
  await run.ended
  moment.clear?.(place)
  const wrong = wrongAfterCrash(inspect(place.data), place, run.said.stdout)
  wrong.push(...(await goOn(place)))
  await comesTrue(() => processesIn(place.directory).length === 0)
  wrong.push(...wrongAtEnd(inspect(place.data), place))
  return { moment: moment.name, missed, wrong }
}

/** The next start, as a person would make it. */
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
