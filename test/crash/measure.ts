import { cp } from "node:fs/promises"
import { join } from "node:path"
import { runArguments } from "./crash.ts"
import { countFileCalls, countWrites, type FileCall } from "./moment.ts"
import { createPlace, type Place } from "./place.ts"
import { canTrace } from "./power-cut.ts"
import { prompt } from "./task.ts"

/** Measurements of undisturbed runs. */
export interface Measured {
  /** Number of rows that a run writes. */
  writes: number
  /** Number of system calls on files at which a kill can happen. Empty if system calls cannot be traced here. */
  fileCalls: ReadonlyMap<FileCall, number>
  /** Duration of a run in milliseconds. */
  ms: number
  /** Path of a data directory with an empty database. */
  template: string
}

/** Creates an empty database, and measures undisturbed runs. Throws if a run fails. */
export async function measure(root: string): Promise<Measured> {
  const template = join(root, "template")
  await using place = await createPlace()
  await place.start(["session", "list"]).ended
  await cp(place.data, template, { recursive: true })
  await using counted = await createPlace()
  let ms = 0
  const writes = await countWrites(counted, template, async () => {
    ms = await runWhole(counted)
  })
  await using traced = await createPlace()
  const fileCalls = canTrace()
    ? await countFileCalls(traced, async (program) => {
        await runWhole(traced, program)
      })
    : new Map<FileCall, number>()
  return { writes, fileCalls, ms, template }
}

/** Runs the task, and returns the duration in milliseconds. */
async function runWhole(place: Place, program?: readonly string[]): Promise<number> {
  const start = Date.now()
  const run = place.start([...runArguments, prompt], program)
  const { code } = await run.ended
  if (code !== 0)
    throw new Error(`An undisturbed run fails: ${run.said.stderr}${run.said.stdout.slice(-2000)}`)
  return Date.now() - start
}
