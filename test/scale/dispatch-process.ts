/** Takes one job of a queue in PostgreSQL, prints its key, and keeps it until the process is killed. */
import { openPgBossDispatcher } from "../../src/scale/pg-boss.ts"

const [url = "", schema = ""] = process.argv.slice(2)
const dispatcher = await openPgBossDispatcher(url, { schema, onProblem() {} })
await dispatcher.work({
  concurrency: 1,
  handle({ key }) {
    process.stdout.write(`${key}\n`)
    return new Promise(() => {})
  },
})
process.stdout.write("ready\n")
