import { createTackle } from "../../src/engine/create-tackle.ts"
import type { TackleOptions } from "../../src/engine/options.ts"
import type { Tackle } from "../../src/engine/tackle.ts"
import { createMemoryStore } from "../../src/store/memory.ts"
import { type ModelServer, type Script, startModelServer } from "../../src/testing/model-server.ts"
import { type TemporaryProject, temporaryProject } from "../../src/testing/project.ts"

/** An engine over a real loopback server in a real directory. */
export interface Engine extends AsyncDisposable {
  tackle: Tackle
  server: ModelServer
  project: TemporaryProject
}

export async function startEngine(
  script: Script,
  options: Partial<TackleOptions> & { files?: Record<string, string> } = {},
): Promise<Engine> {
  const { files = {}, ...rest } = options
  const server = await startModelServer({ script })
  const project = await temporaryProject(files)
  const tackle = await createTackle({
    directory: project.directory,
    dataDirectory: project.path(".data"),
    store: createMemoryStore(),
    model: "test/m",
    providers: { test: { options: { baseURL: server.url, apiKey: "k" }, models: { m: {}, "gpt-5": {} } } },
    ...rest,
  })
  return {
    tackle,
    server,
    project,
    async [Symbol.asyncDispose]() {
      await tackle.close()
      await server.close()
      await project.remove()
    },
  }
}
