import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { parseArgs } from "node:util"
import { crash, type Survival } from "./crash.ts"
import { measure } from "./measure.ts"
import { afterTime, atWrite } from "./moment.ts"

/** The crash tests in full: `npm run test:crash`. Prints each crash that was not survived and how many were. */
const { values } = parseArgs({
  options: {
    random: { type: "string", default: "200" },
    every: { type: "string", default: "1" },
    from: { type: "string", default: "1" },
  },
})
const root = await mkdtemp(join(tmpdir(), "tackle-crash-"))
try {
  const { writes, ms, template } = await measure(root)
  console.log(`An undisturbed run writes ${writes} rows and takes ${ms} ms.`)
  const cases: (() => Promise<Survival>)[] = []
  for (let n = Number(values.from); n <= writes; n += Number(values.every))
    cases.push(() => crash(atWrite(n, template)))
  for (let count = 0; count < Number(values.random); count += 1)
    cases.push(() =>
      crash(afterTime(Math.floor(Math.random() * ms)), { sandbox: count % 2 === 0 ? "off" : "auto" }),
    )
  for (let count = 0; count < Number(values.random) / 4; count += 1)
    cases.push(() => crash(afterTime(Math.floor(Math.random() * ms)), { signal: "SIGTERM" }))
  const survivals = await inParallel(cases, 3)
  const failed = survivals.filter(({ wrong }) => wrong.length > 0)
  const missed = survivals.filter((survival) => survival.missed).length
  console.log(
    `${survivals.length - failed.length} of ${survivals.length} kills were survived; ${missed} came after the end.`,
  )
  process.exitCode = failed.length > 0 ? 1 : 0
} finally {
  await rm(root, { recursive: true, force: true })
}

async function inParallel(cases: readonly (() => Promise<Survival>)[], lanes: number): Promise<Survival[]> {
  const survivals: Survival[] = []
  let next = 0
  const lane = async () => {
    for (let work = cases[next++]; work; work = cases[next++]) {
      const survival = await work()
      survivals.push(survival)
      for (const what of survival.wrong) console.log(`${survival.moment}: ${what}`)
    }
  }
  await Promise.all(Array.from({ length: lanes }, lane))
  return survivals
}
