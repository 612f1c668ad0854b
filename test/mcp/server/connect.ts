import { Client, type ClientCapabilities } from "@modelcontextprotocol/client"
import { InMemoryTransport } from "@modelcontextprotocol/server"
import { onTestFinished } from "vitest"
import type { TackleOptions } from "../../../src/engine/options.ts"
import { createTackle } from "../../../src/engine/runtime.ts"
import type { Tackle } from "../../../src/engine/tackle.ts"
import { openConnection } from "../../../src/mcp/server/connection.ts"
import { temporaryProject } from "../../../src/testing/project.ts"

/** An engine on a project of its own, with what the connection's faults were. */
export async function openEngine(options: Partial<TackleOptions> = {}, files: Record<string, string> = {}) {
  const project = await temporaryProject(files)
  const data = await temporaryProject()
  const tackle = await createTackle({
    directory: project.directory,
    worktree: project.directory,
    dataDirectory: data.directory,
    environment: { PATH: process.env.PATH ?? "" },
    sandbox: "off",
    ...options,
  })
  onTestFinished(async () => {
    await tackle.close()
    await project.remove()
    await data.remove()
  })
  const faults: string[] = []
  const connection = {
    tackle,
    version: "1.2.3",
    describe: ({ permission, patterns }: { permission: string; patterns: string[] }) =>
      `${permission}: ${patterns.join(" ")}`,
    onProblem: (message: string, error: unknown) => void faults.push(`${message}: ${error}`),
  }
  return { project, tackle, faults, connection }
}

/** The SDK's client, connected in this process. `prepare` gets it before. */
export async function connectClient(
  engine: { connection: Parameters<typeof openConnection>[0]; tackle: Tackle },
  capabilities: ClientCapabilities = {},
  prepare: (client: Client) => void = () => {},
) {
  const { server, close } = openConnection(engine.connection)
  const [near, far] = InMemoryTransport.createLinkedPair()
  const client = new Client({ name: "test", version: "1" }, { capabilities })
  onTestFinished(async () => {
    await client.close()
    await close()
  })
  prepare(client)
  await server.connect(far)
  await client.connect(near)
  return { client, close }
}
