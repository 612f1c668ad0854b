import { openSqliteStore } from "../../src/store/sqlite.ts"
import { aMessage, aPart, aSession } from "../suites/records.ts"

/** A process that makes commits: `node writer.ts <database> <name> <commits>`. Prints a line after each commit. */
const [path = "", name = "", commits = "0"] = process.argv.slice(2)
const [sessionID, messageID] = [`ses_${name}`, `msg_${name}`]

const store = await openSqliteStore(path)
await store.commit([
  { kind: "session", session: aSession(sessionID) },
  { kind: "message", message: aMessage(messageID, sessionID) },
])
for (let index = 0; index < Number(commits); index++) {
  const id = `prt_${name}_${String(index).padStart(6, "0")}`
  await store.commit([{ kind: "part", part: aPart(id, messageID, sessionID) }])
  process.stdout.write(`${id}\n`)
  if (index % 50 === 0) await new Promise((resolve) => setImmediate(resolve))
}
await store.close()
