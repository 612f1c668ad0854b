import { parseArgs } from "node:util"
import { crashSeries } from "./series.ts"

/**
 * The crash tests in full: `npm run test:crash`, some ten minutes. Fails where one kill was not survived. The options
 * narrow it down to look into one: `--every 1000 --first 41 --killed 0 --terminated 0 --power-cuts 0
 * --full-disks 0`.
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
