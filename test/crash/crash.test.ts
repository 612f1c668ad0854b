import { expect, test } from "vitest"
import { isComplete } from "../runs.ts"
import { crashSeries } from "./series.ts"

/** The short form of `npm run test:crash`, with different writes each time. */
test.skipIf(process.platform !== "linux")(
  "a killed run continues: nothing is lost, repeated or left running",
  { timeout: 120_000 },
  async () => {
    const every = isComplete ? 18 : 90
    const first = 1 + Math.floor(Math.random() * every)
    const survivals = await crashSeries(
      isComplete
        ? { every, first, killed: 5, terminated: 3, powerCuts: 3, fullDisks: 0 }
        : { every, first, killed: 2, terminated: 1, powerCuts: 1, fullDisks: 0 },
      (line) => console.log(line),
    )
    expect(survivals.length).toBeGreaterThan(isComplete ? 12 : 4)
    expect(survivals.filter(({ wrong }) => wrong.length > 0)).toEqual([])
  },
)
