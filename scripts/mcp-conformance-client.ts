/**
 * The engine as the client that the conformance suite of the protocol's authors asks for: reached with the address of a
 * test server, it connects, lists the tools and calls each once. `npm run conformance:mcp` runs the suite.
 */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createTackle } from "../src/runtime/runtime.ts"
import { isRecord } from "../src/util/json.ts"

const url = process.argv.at(-1) ?? ""
const directory = mkdtempSync(join(tmpdir(), "tackle-conformance-"))
const tackle = await createTackle({
  directory,
  dataDirectory: join(directory, "data"),
  mcp: { suite: { type: "remote", url } },
  permission: { "*": "allow" },
})
// Answers with nothing: every field of a form has its default then.
tackle.on("question.asked", ({ questions, reply }) => void reply(questions.map(() => [])))
try {
  for (const { id, parameters } of await ownTools()) {
    const { state } = await tackle.callTool({ tool: id, input: JSON.stringify(sampleOf(parameters)) })
    if (state.status === "error") throw new Error(`${id}: ${state.error}`)
  }
} finally {
  await tackle.close()
  rmSync(directory, { recursive: true, force: true })
}

async function ownTools() {
  const [server] = await tackle.mcpServers()
  if (server?.status !== "connected") throw new Error(server?.problem ?? "there is no server")
  return (await tackle.tools()).filter(({ source }) => source === "mcp suite")
}

/** A value for every parameter of the types that the suite has. */
function sampleOf({ properties }: Record<string, unknown>): Record<string, unknown> {
  const entries = isRecord(properties) ? Object.entries(properties) : []
  return Object.fromEntries(
    entries.map(([name, schema]) => [name, isRecord(schema) && schema.type === "number" ? 3 : "text"]),
  )
}
