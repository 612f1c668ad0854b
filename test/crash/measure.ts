import { cp } from "node:fs/promises"
import { join } from "node:path"
import { runArguments } from "./crash.ts"
import { countWrites } from "./moment.ts"
import { createPlace } from "./place.ts"
import { prompt } from "./task.ts"

/** How a run goes that nobody disturbs: the rows that it writes, how long it takes, and an empty database. */
export async function measure(root: string): Promise<{ writes: number; ms: number; template: string }> {
  const template = join(root, "template")
  await using place = await createPlace()
  await place.start(["session", "list"]).ended
  await cp(place.data, template, { recursive: true })
  await using second = await createPlace()
  let ms = 0
  const writes = await countWrites(second, template, async () => {
    const start = Date.now()
    const run = second.start([...runArguments, prompt])
    const { code } = await run.ended
    ms = Date.now() - start
    if (code !== 0)
      throw new Error(`An undisturbed run fails: ${run.said.stderr}${run.said.stdout.slice(-2000)}`)
  })
  return { writes, ms, template }
}
