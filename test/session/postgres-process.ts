/**
 * Prompts a new session in its own process, with a store in PostgreSQL, so that a test can stop it. Prints the id of the
 * session, then the events of its end as JSON.
 */
import { createTackle } from "../../src/engine/create-tackle.ts"
import { openPostgresStore } from "../../src/store/postgres.ts"

const [directory = "", model = "", database = "", leaseMs = "3000", text = "go"] = process.argv.slice(2)
const store = await openPostgresStore(database, { leaseMs: Number(leaseMs) })
const tackle = await createTackle({
  directory,
  dataDirectory: `${directory}/.other`,
  store,
  model: "test/m",
  providers: { test: { options: { baseURL: model, apiKey: "k" }, models: { m: {} } } },
  permission: { "*": "allow" },
})
const session = await tackle.sessions.create()
process.stdout.write(`${session.id}\n`)
const ends: unknown[] = []
for await (const event of session.prompt(text))
  if (["session.error", "run.completed"].includes(event.type)) ends.push(event)
process.stdout.write(`${JSON.stringify(ends)}\n`)
await tackle.close()
await store.close()
