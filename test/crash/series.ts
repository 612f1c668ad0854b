import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { errorMessage } from "../../src/util/errors.ts"
import { type CrashOptions, crash, type Survival } from "./crash.ts"
import { canMount, fullDisk, readOnly } from "./disk.ts"
import { measure } from "./measure.ts"
import { afterTime, atFileCall, atWrite, type Moment } from "./moment.ts"
import { canTrace } from "./power-cut.ts"

/** Numbers of crashes of each kind. */
export interface SeriesSize {
  /** Interrupts a run in every `every`-th write and at every `every`-th system call on a file, starting at `first`. */
  every: number
  first?: number
  /** Runs that are killed with SIGKILL at random moments. Every other run has its commands in the sandbox. */
  killed: number
  /** Runs that receive SIGTERM at random moments. */
  terminated: number
  /** Runs with a power loss at random moments. */
  powerCuts: number
  /** Runs on disks of random sizes that are too small. A number above 0 also adds a run on a read-only disk. */
  fullDisks: number
}

interface Case {
  name: string
  run(): Promise<Survival>
}

/** Number of concurrent runs. Each run waits for commands and the disk most of the time. */
const lanes = 3

/** Slightly less than the size in KB that a complete run needs. Larger disks are rarely full. */
const largestDisk = 900

/** Makes all crashes, and reports problems as soon as they are found. Returns the results in the order of completion. */
export async function crashSeries(size: SeriesSize, say: (line: string) => void): Promise<Survival[]> {
  const root = await mkdtemp(join(tmpdir(), "tackle-crash-"))
  try {
    const start = Date.now()
    const { writes, fileCalls, ms, template } = await measure(root)
    const cases: Case[] = []
    const add = (moment: Moment, options?: CrashOptions) =>
      cases.push({ name: moment.name, run: () => crash(moment, options) })
    const random = () => afterTime(Math.floor(Math.random() * ms))
    for (let n = size.first ?? 1; n <= writes; n += size.every) add(atWrite(n, template))
    const calls = [...fileCalls].flatMap(([call, count]) =>
      Array.from({ length: count }, (_, index) => atFileCall(call, index + 1)),
    )
    for (const [index, call] of calls.entries())
      if ((index + 1 - (size.first ?? 1)) % size.every === 0) add(call)
    for (let n = 0; n < size.killed; n += 1) add(random(), { sandbox: n % 2 === 0 ? "off" : "auto" })
    for (let n = 0; n < size.terminated; n += 1) add(random(), { signal: "SIGTERM" })
    if (size.powerCuts > 0 && !canTrace()) say("No power cuts: there is no strace that works here.")
    else
      for (let n = 0; n < size.powerCuts; n += 1) add(random(), { powerCut: { lost: n % 2 === 0 ? 1 : 0.3 } })
    if (size.fullDisks > 0 && !canMount()) say("No full disks: there is no bwrap that works here.")
    else if (size.fullDisks > 0)
      cases.push({ name: "on a read-only disk", run: readOnly }, ...diskCases(size))

    const survivals = await inLanes(cases, say)
    const survived = survivals.filter(({ wrong }) => wrong.length === 0).length
    const missed = survivals.filter((survival) => survival.missed).length
    const minutes = ((Date.now() - start) / 60_000).toFixed(1)
    say(
      `${survived} of ${survivals.length} kills were survived, of a run of ${writes} writes and ${calls.length} calls for files in ${ms} ms ` +
        `(${missed} came after its end), in ${minutes} minutes.`,
    )
    return survivals
  } finally {
    await rm(root, { recursive: true, force: true })
  }
}

function diskCases({ fullDisks }: SeriesSize): Case[] {
  return Array.from({ length: fullDisks }, () => {
    const size = 4 + Math.floor(Math.random() * (largestDisk - 4))
    return { name: `on a disk of ${size} KB`, run: () => fullDisk(size) }
  })
}

async function inLanes(cases: readonly Case[], say: (line: string) => void): Promise<Survival[]> {
  const survivals: Survival[] = []
  let next = 0
  const lane = async () => {
    for (let work = cases[next++]; work; work = cases[next++]) {
      const { name, run } = work
      // A run that cannot be inspected counts as failed. The others continue.
      const survival = await run().catch((error: unknown) => ({
        moment: name,
        missed: false,
        wrong: [`the test itself failed: ${errorMessage(error)}`],
      }))
      survivals.push(survival)
      for (const what of survival.wrong) say(`${name}: ${what}`)
      if (survivals.length % 50 === 0) say(`${survivals.length} of ${cases.length}`)
    }
  }
  await Promise.all(Array.from({ length: lanes }, lane))
  return survivals
}
