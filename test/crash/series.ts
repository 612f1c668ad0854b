import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { crash, type Survival } from "./crash.ts"
import { measure } from "./measure.ts"
import { afterTime, atWrite } from "./moment.ts"
import { canTrace } from "./power-cut.ts"

/** How many crashes there are to be. */
export interface SeriesSize {
  /** One inside every so many-th write of the run, from `first` on. */
  every: number
  first?: number
  /** At random moments by SIGKILL, every other one with commands in the sandbox. */
  killed: number
  /** At random moments by SIGTERM. */
  terminated: number
  /** At random moments with a loss of power. */
  powerCuts: number
}

/** So many runs at once: each waits for commands and the disk most of the time. */
const lanes = 3

/** Crashes run after run, and says what was wrong as soon as it is seen. Returns all, in the order of their ends. */
export async function crashSeries(size: SeriesSize, say: (line: string) => void): Promise<Survival[]> {
  const root = await mkdtemp(join(tmpdir(), "tackle-crash-"))
  try {
    const { writes, ms, template } = await measure(root)
    const moment = () => afterTime(Math.floor(Math.random() * ms))
    const cases: (() => Promise<Survival>)[] = []
    for (let n = size.first ?? 1; n <= writes; n += size.every) cases.push(() => crash(atWrite(n, template)))
    for (let n = 0; n < size.killed; n += 1)
      cases.push(() => crash(moment(), { sandbox: n % 2 === 0 ? "off" : "auto" }))
    for (let n = 0; n < size.terminated; n += 1) cases.push(() => crash(moment(), { signal: "SIGTERM" }))
    if (size.powerCuts > 0 && !canTrace()) say("No power cuts: there is no strace that works here.")
    else
      for (let n = 0; n < size.powerCuts; n += 1)
        cases.push(() => crash(moment(), { powerCut: { lost: n % 2 === 0 ? 1 : 0.3 } }))
    const survivals = await inLanes(cases, say)
    const survived = survivals.filter(({ wrong }) => wrong.length === 0).length
    const missed = survivals.filter((survival) => survival.missed).length
    say(
      `${survived} of ${survivals.length} kills were survived, of a run of ${writes} writes in ${ms} ms ` +
        `(${missed} came after its end).`,
    )
    return survivals
  } finally {
    await rm(root, { recursive: true, force: true })
  }
}

async function inLanes(
  cases: readonly (() => Promise<Survival>)[],
  say: (line: string) => void,
): Promise<Survival[]> {
  const survivals: Survival[] = []
  let next = 0
  const lane = async () => {
    for (let work = cases[next++]; work; work = cases[next++]) {
      const survival = await work()
      survivals.push(survival)
      for (const what of survival.wrong) say(`${survival.moment}: ${what}`)
    }
  }
  await Promise.all(Array.from({ length: lanes }, lane))
  return survivals
}
