/**
 * Sends inputs to a session in its own process, so that a test can kill it, and delivers what waits. Prints the id of
 * each input whose receipt it has.
 */
import { setTimeout as pause } from "node:timers/promises"
import { createTackle } from "../../src/engine/create-tackle.ts"

const [directory = "", url = "", sessionID = "", name = ""] = process.argv.slice(2)
const tackle = await createTackle({
  directory,
  dataDirectory: `${directory}/.data`,
  model: "test/m",
  providers: { test: { options: { baseURL: url, apiKey: "k" }, models: { m: {} } } },
  permission: { "*": "allow" },
})
const session = await tackle.sessions.get(sessionID)
if (!session) throw new Error("The session does not exist.")
process.stdout.write("ready\n")
const deliveries = ["steer", "queue", "steer", "queue", "now"] as const
for (let index = 0; ; index += 1) {
  const id = `${name}-${index}`
  await session.send(`input ${id}.`, { id, delivery: deliveries[index % deliveries.length] })
  process.stdout.write(`${id}\n`)
  await pause(Math.random() * 60)
}
