import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect, onTestFinished, test } from "vitest"
import { isComplete } from "../runs.ts"
import { goOn, runArguments } from "./crash.ts"
import { eventsIn, inspect, wrongAtEnd } from "./inspect.ts"
import { createPlace, type Place } from "./place.ts"
import { prompt } from "./task.ts"

const count = isComplete ? 16 : 8

/** The numbers of the runs that are killed half-way. */
const victims = new Set([3, 7, 11, 15].filter((index) => index < count))

test.skipIf(process.platform !== "linux")(
  `${count} simultaneous runs share one database, some are killed, and all finish`,
  { timeout: 120_000 },
  async () => {
    const data = await mkdtemp(join(tmpdir(), "tackle-simultaneous-"))
    onTestFinished(() => rm(data, { recursive: true, force: true }))
    await using disposer = new AsyncDisposableStack()
    const places: Place[] = []
    for (let index = 0; index < count; index += 1) places.push(disposer.use(await createPlace({ data })))

    const runs = places.map((place) => place.start([...runArguments, prompt]))
    runs.forEach(({ child, said }, index) => {
      if (!victims.has(index)) return
      child.stdout?.on("data", () => {
        if (said.stdout.includes("echo slow")) child.kill("SIGKILL")
      })
    })
    const ends = await Promise.all(runs.map(({ ended }) => ended))
    for (const [index, { code, signal }] of ends.entries()) {
      const { stdout, stderr } = runs[index]?.said ?? {}
      const errors = eventsIn(stdout ?? "").filter(({ type }) => type === "session.error")
      expect({ code, signal, errors, stderr }).toEqual(
        victims.has(index)
          ? { code: null, signal: "SIGKILL", errors: [], stderr: "" }
          : { code: 0, signal: null, errors: [], stderr: "" },
      )
    }
    expect(inspect(data).faults).toEqual([])

    // The runs continue at the same time, each in its own project.
    const wrong = await Promise.all(places.filter((_, index) => victims.has(index)).map(goOn))
    expect(wrong.flat()).toEqual([])
    const remains = inspect(data)
    expect(remains.sessions).toBeGreaterThanOrEqual(count * 2)
    expect(places.flatMap((place) => wrongAtEnd(remains, place))).toEqual([])
  },
)
