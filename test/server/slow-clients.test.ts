import { subscribe, unsubscribe } from "node:diagnostics_channel"
import { once } from "node:events"
import { type IncomingMessage, request, type ServerResponse } from "node:http"
import { connect, type Socket } from "node:net"
import { text } from "node:stream/consumers"
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from "vitest"
import { temporaryProject } from "../../src/testing/project.ts"
import type { Channel } from "../../src/util/channel.ts"
import { tokens } from "./start-server.ts"

/** The largest number of values that waited in one queue of the server. */
let largestQueue = 0
let setUp: typeof import("./start-server.ts").setUp

// Test files share their modules, so the observed queue needs new ones.
beforeAll(async () => {
  vi.resetModules()
  vi.doMock(import("../../src/util/channel.ts"), async (original) => {
    const { createChannel } = await original()
    return { createChannel: (onLeave) => observed(createChannel(onLeave)) }
  })
  ;({ setUp } = await import("./start-server.ts"))
})
afterAll(() => {
  vi.doUnmock("../../src/util/channel.ts")
  vi.resetModules()
})

function observed<T>(channel: Channel<T>): Channel<T> {
  const { push } = channel
  channel.push = (value) => {
    push(value)
    largestQueue = Math.max(largestQueue, channel.size)
  }
  return channel
}

const maxWaiting = 5
const answer = "word ".repeat(20_000)

/** Starts a server on a Unix socket, whose buffers in the system are small. */
async function setUpSocket() {
  const { path } = await temporaryProject({})
  const socketPath = path("server.sock")
  const { directory } = await setUp(() => ({ text: answer }), { maxWaiting, socket: socketPath })
  const headers = { authorization: `Bearer ${tokens.admin}`, "content-type": "application/json" }

  async function post(route: string, body: unknown = {}) {
    const sent = request({ socketPath, path: route, method: "POST", headers }).end(JSON.stringify(body))
    const [response] = (await once(sent, "response")) as [IncomingMessage]
    return JSON.parse(await text(response))
  }

  /** Opens a stream and reads nothing. */
  async function open(route: string): Promise<Socket> {
    const socket = connect(socketPath)
    socket.write(
      `GET ${route} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${tokens.read}\r\nConnection: close\r\n\r\n`,
    )
    await once(socket, "readable")
    return socket
  }
  return { directory, post, open }
}

/** Collects the responses of the server's event streams. */
function watchStreams(): ServerResponse[] {
  const streams: ServerResponse[] = []
  const onStart = (message: unknown) => {
    const { request: incoming, response } = message as { request: IncomingMessage; response: ServerResponse }
    if (incoming.url?.includes("/event")) streams.push(response)
  }
  subscribe("http.server.request.start", onStart)
  onTestFinished(() => void unsubscribe("http.server.request.start", onStart))
  return streams
}

test.each([
  {
    name: "a session",
    route: (path: string) => `${path}/event?after=0`,
    end: /"type":"reset".*"reason":"behind"/,
  },
  { name: "all sessions", route: () => "/event", end: /"type":"reset","reason":"behind"/ },
  { name: "OpenCode's client", route: () => "/opencode/event", end: /0\r\n\r\n$/ },
])("bounds what waits for 200 clients that never read the stream of $name", async ({ route, end }) => {
  const { directory, post, open } = await setUpSocket()
  const streams = watchStreams()
  const { id } = await post("/session", { directory })
  const clients = await Promise.all(Array.from({ length: 200 }, () => open(route(`/session/${id}`))))
  largestQueue = 0
  for (let count = 0; count < 4; count += 1) {
    await post(`/session/${id}/input`, { text: "Hi" })
    expect((await post(`/session/${id}/wait`)).run.status).toBe("completed")
  }
  expect(largestQueue).toBe(maxWaiting + 1)
  expect(streams).toHaveLength(200)
  // One write: 64 KB and the event that exceeds them.
  for (const { writableLength } of streams) expect(writableLength).toBeLessThan(64 * 1024 + 2 * answer.length)
  // A client that reads again receives what is buffered, and the end of its stream.
  for (const client of clients) expect((await text(client)).slice(-300)).toMatch(end)
})
