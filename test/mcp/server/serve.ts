import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client"
import { onTestFinished } from "vitest"
import { type HttpOptions, startHttp } from "../../../src/mcp/server/http.ts"
import { openEngine } from "./connect.ts"

/** Key of the servers in these tests. */
export const key = "secret"

/** Serves an engine with a file `a.txt` over HTTP. */
export async function serve(
  { connection, ...options }: Partial<Omit<HttpOptions, "connection">> & { connection?: object } = {},
  engineOptions: Parameters<typeof openEngine>[0] = { permission: { "*": "allow" } },
) {
  const engine = await openEngine(engineOptions, { "a.txt": "one\n" })
  const server = await startHttp({
    connection: { ...engine.connection, ...connection },
    port: 0,
    key,
    ...options,
  })
  onTestFinished(() => server.close())
  return { ...engine, server, url: new URL(server.url) }
}

/** Connects the SDK's client, which shows forms. */
export async function connect(url: URL) {
  const headers = { authorization: `Bearer ${key}` }
  const transport = new StreamableHTTPClientTransport(url, { requestInit: { headers } })
  const client = new Client({ name: "test", version: "1" }, { capabilities: { elicitation: { form: {} } } })
  onTestFinished(() => client.close())
  await client.connect(transport)
  return { client, transport }
}
