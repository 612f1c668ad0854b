import type { AddressInfo } from "node:net"
import { createServer, type Server } from "node:net"
import { expect, test } from "vitest"
import { findLocalServers } from "../../src/model/list-models.ts"
import { startServer } from "./server.ts"

const signal = new AbortController().signal

test("finds only servers that answer with models", async () => {
  const list = JSON.stringify({ object: "list", data: [{ id: "qwen3", object: "model" }, { id: "llama" }] })
  await using good = await startServer((response) => void response.end(list))
  await using web = await startServer((response) => void response.end("<html>hi</html>"))
  await using refusing = await startServer((response) => void response.writeHead(401).end(list))
  await using huge = await startServer((response) => {
    const timer = setInterval(() => response.write(" ".repeat(200_000)), 1)
    response.on("close", () => clearInterval(timer))
  })
  const found = await findLocalServers({
    signal,
    ports: { ollama: good.port, lmstudio: web.port, llamacpp: refusing.port, vllm: huge.port },
  })
  expect(found).toEqual([
    {
      providerID: "ollama",
      name: "Ollama",
      baseURL: `http://127.0.0.1:${good.port}/v1`,
      models: ["qwen3", "llama"],
    },
  ])
  expect(good.received[0]).toMatchObject({ method: "GET", url: "/v1/models" })
  await huge.abandoned
})

test("ignores silence, other protocols, redirects and closed ports", async () => {
  const silent = await startServer(() => {})
  const closed = await startServer(() => {})
  await closed[Symbol.asyncDispose]()
  const other = createServer((socket) => {
    socket.on("error", () => {})
    // An unread socket never notices that the other side closed.
    socket.resume()
    socket.end("220 mail ready\r\n", () => socket.destroy())
  })
  await new Promise<void>((listening) => other.listen(0, "127.0.0.1", listening))
  await using target = await startServer((response) => void response.end('{"data":[{"id":"m"}]}'))
  await using redirecting = await startServer((response) => {
    response.writeHead(302, { location: `${target.origin}/v1/models` }).end()
  })
  const ports = {
    ollama: silent.port,
    lmstudio: closed.port,
    llamacpp: portOf(other),
    vllm: redirecting.port,
  }
  expect(await findLocalServers({ signal, ports })).toEqual([])
  expect(target.received).toEqual([])
  await silent[Symbol.asyncDispose]()
  await new Promise((done) => other.close(done))
})

test("asks only loopback and stops at the signal", async () => {
  const asked: string[] = []
  const spy: typeof fetch = async (input) => {
    asked.push(new URL(String(input)).host)
    throw new Error("nobody")
  }
  await findLocalServers({ signal, fetch: spy })
  expect(asked).toEqual(["127.0.0.1:11434", "127.0.0.1:1234", "127.0.0.1:8080", "127.0.0.1:8000"])
  await expect(findLocalServers({ signal: AbortSignal.abort(), fetch: spy })).rejects.toThrow()
})

function portOf(server: Server): number {
  return (server.address() as AddressInfo).port
}
