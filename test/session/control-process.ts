/**
 * Runs a session in its own process, so that a test can control it from another one. Sends each line of the input to the
 * session, except `ID|reject`, which answers a request. Prints the id of the session, and then JSON: the outcomes of
 * these answers, and the events of requests and of ends.
 */
import { createInterface } from "node:readline"
import { createTackle } from "../../src/engine/create-tackle.ts"
import { openPostgresStore } from "../../src/store/postgres.ts"
import { tool } from "./run.ts"

const [directory = "", model = "", database = ""] = process.argv.slice(2)
const store = database === "" ? undefined : await openPostgresStore(database)
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
  const [text = "", action] = line.split("|")
  if (action === "reject") {
    const outcome = await tackle.reply(text, { reply: "reject" })
    process.stdout.write(`${JSON.stringify({ outcome })}\n`)
  } else await session.send(text, { delivery: "queue" })
}
await session.wait()
await tackle.close()
await store?.close()
