/** Loads the tool files in `<directory>/.tackle`, makes the given calls, and prints the results as JSON. */
import { join } from "node:path"
import { createTackle } from "../../src/engine/create-tackle.ts"
import { findToolFiles } from "../../src/registry/files.ts"
import { createMemoryStore } from "../../src/store/memory.ts"

/** The printed result. */
export interface ToolFileReport {
  problems: { file: string; message: string }[]
  sources: Record<string, string>
  outputs: Record<string, string>
}

const [directory = "", options = "{}"] = process.argv.slice(2)
const { calls = {}, override = [] } = JSON.parse(options) as {
  calls?: Record<string, unknown>
  override?: string[]
}
const tackle = await createTackle({
  directory,
  dataDirectory: join(directory, ".data"),
  store: createMemoryStore(),
  toolFiles: findToolFiles([join(directory, ".tackle")]),
  permission: { "*": "allow" },
  override,
})
const outputs: Record<string, string> = {}
for (const [tool, input] of Object.entries(calls)) {
  const { state } = await tackle.callTool({ tool, input: JSON.stringify(input) })
  outputs[tool] = state.status === "completed" ? state.output : `failed: ${state.error}`
}
const sources = Object.fromEntries((await tackle.tools()).map(({ id, source }) => [id, source]))
const report: ToolFileReport = { problems: [...tackle.problems()], sources, outputs }
await tackle.close()
process.stdout.write(JSON.stringify(report))
