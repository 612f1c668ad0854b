import { parseArgs } from "node:util"
import { crashSeries } from "./series.ts"

/**
 * Runs all crash tests (`npm run test:crash`). Takes about ten minutes. Fails if a run does not survive. The options
 * select single crashes, such as `--every 1000 --first 41 --killed 0 --terminated 0 --power-cuts 0 --full-disks 0`.
 */
const { values } = parseArgs({
  options: {
    every: { type: "string", default: "1" },
    first: { type: "string", default: "1" },
    killed: { type: "string", default: "200" },
    terminated: { type: "string", default: "50" },
    "power-cuts": { type: "string", default: "50" },
    "full-disks": { type: "string", default: "20" },
  },
})
const survivals = await crashSeries(
  {
    every: Number(values.every),
    first: Number(values.first),
    killed: Number(values.killed),
    terminated: Number(values.terminated),
    powerCuts: Number(values["power-cuts"]),
    fullDisks: Number(values["full-disks"]),
  },
  (line) => console.log(line),
)
if (survivals.some(({ wrong }) => wrong.length > 0)) process.exitCode = 1
