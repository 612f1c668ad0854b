import { expect, test } from "vitest"
import { crashSeries } from "./series.ts"

/** The short form of `npm run test:crash`: other writes each time. */
test.skipIf(process.platform !== "linux")(
  "a killed run continues: nothing is lost, repeated or left running",
  { timeout: 120_000 },
  async () => {
    const first = 1 + Math.floor(Math.random() * 18)
    const survivals = await crashSeries(
      { every: 18, first, killed: 5, terminated: 3, powerCuts: 3, fullDisks: 0 },
      (line) => console.log(line),
    )
    expect(survivals.length).toBeGreaterThan(12)
    expect(survivals.filter(({ wrong }) => wrong.length > 0)).toEqual([])
  },
)
