/**
 * Runs a session in its own process, so that a test can control it from another one. Sends each line of the input to the
 * session. Prints the id of the session, then each line of the output as JSON: events of requests and of the end.
 */
import { createInterface } from "node:readline"
import { createTackle } from "../../src/engine/create-tackle.ts"
import { openPostgresStore } from "../../src/store/postgres.ts"
import { tool } from "./run.ts"

const [directory = "", model = "", database = ""] = process.argv.slice(2)
const store = database === "" ? undefined : await openPostgresStore(database, { leaseMs: 1000 })
const tackle = await createTackle({
  directory,
  // The file locks and journals of another machine.
  dataDirectory: store ? `${directory}/.other` : `${directory}/.data`,
  store,
  model: "test/m",
  providers: { test: { options: { baseURL: model, apiKey: "k" }, models: { m: {} } } },
  permission: { "*": "allow", act: "ask" },
  tools: [tool("act", () => ({ title: "", output: "acted" }))],
  approvals: true,
  questions: true,
})
const shown = [
  "permission.asked",
  "permission.replied",
  "question.asked",
  "question.replied",
  "run.completed",
]
tackle.subscribe((event) => {
  if (shown.includes(event.type)) process.stdout.write(`${JSON.stringify(event)}\n`)
})
const session = await tackle.sessions.create()
process.stdout.write(`${session.id}\n`)
for await (const line of createInterface({ input: process.stdin })) {
  const [id = "", action = "", text = ""] = line.split("|")
  if (action === "reply") {
    const outcome = await tackle.reply(id, { reply: "reject", message: text })
    process.stdout.write(`${JSON.stringify({ outcome })}\n`)
  } else await session.send(id, { delivery: "queue" })
}
await session.wait()
await tackle.close()
await store?.close()
