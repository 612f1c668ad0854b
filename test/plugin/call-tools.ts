/** Loads plugin files of `<directory>/.tackle` and packages, calls their tools, and prints a report as JSON. */
import { join } from "node:path"
import { createTackle } from "../../src/engine/create-tackle.ts"
import { findPackage, findPluginFiles, type NamedPlugin } from "../../src/plugin/source.ts"
import { createMemoryStore } from "../../src/store/memory.ts"

/** The report for the test. */
export interface PluginReport {
  /** By file name without directory, or by package name. */
  problems: Record<string, string>
  sources: Record<string, string>
  parameters: Record<string, unknown>
  /** Output or error of each call, in order. */
  outputs: string[]
}

/** The input of the script. */
export interface PluginJob {
  packages?: NamedPlugin[]
  calls?: [tool: string, input: unknown][]
}

const [directory = "", text = "{}"] = process.argv.slice(2)
const { packages = [], calls = [] } = JSON.parse(text) as PluginJob
const files = findPluginFiles([join(directory, ".tackle")])
const tackle = await createTackle({
  directory,
  dataDirectory: join(directory, ".data"),
  store: createMemoryStore(),
  permission: { "*": "allow" },
  plugins: [
    ...packages.map((named) => findPackage(named, [join(directory, "none"), join(directory, "home")])),
    ...files.map((path) => ({ name: path, path })),
  ],
  limits: { plugin: { loadMs: 1_000 } },
})
const outputs: string[] = []
for (const [tool, input] of calls) {
  const { state } = await tackle.callTool({ tool, input: JSON.stringify(input) })
  outputs.push(state.status === "completed" ? state.output : `failed: ${state.error}`)
}
const listed = await tackle.tools()
const problems: Record<string, string> = {}
for (const { file, message } of tackle.problems()) {
  const name = file.replace(/.*\//, "")
  problems[name] = [problems[name], message].filter(Boolean).join(" | ")
}
const report: PluginReport = {
  problems,
  sources: Object.fromEntries(listed.map(({ id, source }) => [id, source])),
  parameters: Object.fromEntries(listed.map(({ id, parameters }) => [id, parameters])),
  outputs,
}
await tackle.close()
process.stdout.write(JSON.stringify(report))
// A plugin that never gets ready holds nothing that would keep the process; what others hold is not waited for.
process.exit(0)
