/**
 * An engine that runs while files of its tools change. Does the steps it is told, one after the other, and prints what
 * became of each as JSON: of a call the output or error, of `problems` the faults told since the last.
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
  | { faults: true }

const [directory = "", steps = "[]"] = process.argv.slice(2)
const folders = [join(directory, ".tackle")]
let faults: string[] = []
const tackle = await createTackle({
  directory,
  dataDirectory: join(directory, ".data"),
  store: createMemoryStore(),
  toolFiles: {
    watched: () => watchedToolPaths(folders),
    find: async () => ({ files: findToolFiles(folders).map((path) => ({ path })), problems: [] }),
  },
  permission: { "*": "allow" },
  onProblem: (message, error) => faults.push(`${message}: ${(error as Error).message}`),
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
  const told = faults
  faults = []
  return told.map((text) => text.replaceAll(directory, ""))
}
