import { Client, type ClientCapabilities } from "@modelcontextprotocol/client"
import { InMemoryTransport } from "@modelcontextprotocol/server"
import { onTestFinished } from "vitest"
import { createTackle } from "../../../src/engine/create-tackle.ts"
import type { TackleOptions } from "../../../src/engine/options.ts"
import type { Tackle } from "../../../src/engine/tackle.ts"
import { openConnection } from "../../../src/mcp/server/connection.ts"
import { temporaryProject } from "../../../src/testing/project.ts"

/** Starts an engine on a new project and records the problems of its connections. */
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
  const problems: string[] = []
  const connection = {
    tackle,
    trustClient: true,
    version: "1.2.3",
    describe: ({ permission, patterns }: { permission: string; patterns: string[] }) =>
      `${permission}: ${patterns.join(" ")}`,
    onProblem: (message: string, error: unknown) => void problems.push(`${message}: ${error}`),
  }
  return { project, tackle, problems, connection }
}

/** Connects the SDK's client in this process. `prepare` gets it first. */
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
