import { createServer, type IncomingHttpHeaders, request } from "node:http"
import type { AddressInfo } from "node:net"
import { resolve } from "node:path"
import type { Readable } from "node:stream"
import { startProcess } from "../../../src/util/process.ts"

const program = resolve(import.meta.dirname, "../../../node_modules/.bin/mcp-server-everything")

/** `server-everything` behind a relay that records the requests. */
export interface RemoteTestServer extends AsyncDisposable {
  url: string
  /** Requests, such as `POST /mcp`, with their headers. */
  asked: { line: string; headers: IncomingHttpHeaders }[]
  /** Restarts the server, which then has no sessions. */
  restart(): Promise<void>
}

/** Starts the server with the transport. */
export async function remoteServer(kind: "streamableHttp" | "sse"): Promise<RemoteTestServer> {
  const port = await freePort()
  const asked: RemoteTestServer["asked"] = []
  let running = await start(kind, port)
  const relay = createServer((incoming, answer) => {
    asked.push({ line: `${incoming.method} ${incoming.url}`, headers: incoming.headers })
    const { method, url: path, headers } = incoming
    const outgoing = request({ port, host: "127.0.0.1", method, path, headers }, (response) => {
      answer.writeHead(response.statusCode ?? 500, response.headers)
      pass(response, answer)
    })
    outgoing.on("error", () => answer.destroy())
    answer.on("close", () => outgoing.destroy())
    incoming.pipe(outgoing)
  })
  await new Promise<void>((done) => relay.listen(0, "127.0.0.1", done))
  const { port: relayed } = relay.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${relayed}/${kind === "sse" ? "sse" : "mcp"}`,
    asked,
    async restart() {
      await running.kill()
      running = await start(kind, port)
    },
    async [Symbol.asyncDispose]() {
      relay.closeAllConnections()
      await new Promise((done) => relay.close(done))
      await running.kill()
    },
  }
}

function pass(from: Readable, to: NodeJS.WritableStream): void {
  from.on("error", () => to.end())
  from.pipe(to)
}

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done))
  const { port } = server.address() as AddressInfo
  await new Promise((done) => server.close(done))
  return port
}

/** Resolves when the server prints its port. */
async function start(kind: string, port: number) {
  const { promise: listening, resolve: listens } = Promise.withResolvers<void>()
  let output = ""
  const running = await startProcess({
    argv: [program, kind],
    cwd: import.meta.dirname,
    env: { ...process.env, PORT: String(port) },
    onOutput(bytes) {
      output += Buffer.from(bytes).toString()
      if (/port \d/.test(output)) listens()
    },
  })
  await listening
  return running
}
