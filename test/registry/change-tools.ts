/**
 * Runs an engine while its tool files change. Performs the given steps in order and prints their results as JSON: the
 * output or error of a call, the ids, or the problems reported since the last step.
 */
import { chmodSync, mkdirSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { createTackle } from "../../src/engine/create-tackle.ts"
import { findToolFiles, watchedToolPaths } from "../../src/registry/files.ts"
import { createMemoryStore } from "../../src/store/memory.ts"

/** Paths below the directory. */
export type Step =
  | { write: string; text: string; executable?: boolean }
  | { remove: string }
  | { call: string }
  | { ids: true }
  | { problems: true }

const [directory = "", steps = "[]"] = process.argv.slice(2)
const folders = [join(directory, ".tackle")]
let problems: string[] = []
const tackle = await createTackle({
  directory,
  dataDirectory: join(directory, ".data"),
  store: createMemoryStore(),
  toolFiles: {
    watched: () => watchedToolPaths(folders),
    find: async () => ({ files: findToolFiles(folders).map((path) => ({ path })), problems: [] }),
  },
  permission: { "*": "allow" },
  onProblem: (message, error) => problems.push(`${message}: ${(error as Error).message}`),
})
const results: unknown[] = []
for (const step of JSON.parse(steps) as Step[]) {
  const result = await perform(step)
  if (result !== undefined) results.push(result)
}
await tackle.close()
process.stdout.write(JSON.stringify(results))

async function perform(step: Step): Promise<unknown> {
  if ("write" in step) {
    const path = join(directory, step.write)
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, step.text)
    if (step.executable) chmodSync(path, 0o755)
    return undefined
  }
  if ("remove" in step) return rmSync(join(directory, step.remove))
  if ("call" in step) {
    const { state } = await tackle.callTool({ tool: step.call, input: "{}" })
    return state.status === "completed" ? state.output : `failed: ${state.error}`
  }
  if ("ids" in step) {
    const custom = (await tackle.tools()).filter(({ source }) => source.startsWith(directory))
    return custom.map(({ id }) => id)
  }
  const reported = problems
  problems = []
  return reported.map((text) => text.replaceAll(directory, ""))
}
