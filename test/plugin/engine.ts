import { join } from "node:path"
import { createTackle } from "../../src/engine/create-tackle.ts"
import type { TackleOptions } from "../../src/engine/options.ts"
import type { Tackle } from "../../src/engine/tackle.ts"
import { findPluginFiles, type PluginSource } from "../../src/plugin/source.ts"
import { createMemoryStore } from "../../src/store/memory.ts"
import { type ModelServer, type Script, startModelServer } from "../../src/testing/model-server.ts"
import { type TemporaryProject, temporaryProject } from "../../src/testing/project.ts"

/** An engine with plugin files in a temporary project. */
export interface PluginEngine extends AsyncDisposable {
  tackle: Tackle
  server: ModelServer
  project: TemporaryProject
  /** Problems that were reported to the user. */
  problems: string[]
}

export interface PluginEngineOptions extends Partial<TackleOptions> {
  /** Contents of `.tackle/plugin/<name>` by name. */
  files?: Record<string, string>
  /** Further files of the project. */
  others?: Record<string, string>
  /** Plugins before those of the files. */
  before?(project: TemporaryProject): PluginSource[]
  script?: Script
}

export async function startPluginEngine(given: PluginEngineOptions): Promise<PluginEngine> {
  const { files = {}, others = {}, before, script = [{ text: "Done." }], ...options } = given
  const project = await temporaryProject({
    ...others,
    ...Object.fromEntries(Object.entries(files).map(([name, text]) => [`.tackle/plugin/${name}`, text])),
  })
  const server = await startModelServer({ script })
  const problems: string[] = []
  const found = findPluginFiles([join(project.directory, ".tackle")])
  const tackle = await createTackle({
    directory: project.directory,
    dataDirectory: project.path(".data"),
    store: createMemoryStore(),
    model: "test/m",
    providers: { test: { options: { baseURL: server.url, apiKey: "k" }, models: { m: {} } } },
    permission: { "*": "allow" },
    plugins: [...(before?.(project) ?? []), ...found.map((path) => ({ name: path, path }))],
    onProblem: (message, error) => problems.push(`${message}: ${String(error)}`),
    ...options,
  })
  return {
    tackle,
    server,
    project,
    problems,
    async [Symbol.asyncDispose]() {
      await tackle.close()
      await server.close()
      await project.remove()
    },
  }
}

/** Returns the output of a standalone call, or its error. */
export async function callTool(tackle: Tackle, tool: string, input: unknown): Promise<string> {
  const { state } = await tackle.callTool({ tool, input: JSON.stringify(input) })
  return state.status === "completed" ? state.output : `failed: ${state.error}`
}
