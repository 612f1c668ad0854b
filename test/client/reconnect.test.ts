import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { describe, expect, onTestFinished, test, vi } from "vitest"
import { createClient } from "../../src/client/client.ts"
import { ClientError } from "../../src/client/errors.ts"
import type { SessionClient } from "../../src/client/sessions.ts"
import type { SessionEvent } from "../../src/session/session-events.ts"
import type { Script } from "../../src/testing/model-server.ts"
import { setUp, tokens } from "../server/start-server.ts"
import { tool } from "../session/run.ts"
import { startCuttingProxy } from "./cutting-proxy.ts"
import { createView } from "./view.ts"

const note = tool("note", () => ({ title: "", output: "noted" }))

/** A model that makes some calls, and then repeats the user's last text. */
const script: Script = ({ body: { messages } }) => {
  const calls = messages.slice(messages.findLastIndex(({ role }) => role === "user")).length / 2
  if (calls < 3) return { text: `Step ${calls}.`, calls: [{ name: "note", arguments: {} }] }
  return { text: "All is noted now." }
}

/** Starts a server, and a client that reaches it through a proxy. */
async function connect(
  given: Script = script,
  permission: Record<string, "allow" | "ask"> = { "*": "allow", doom_loop: "allow" },
) {
  const { server, directory, store, model } = await setUp(given, { engine: { tools: [note], permission } })
  const proxy = await startCuttingProxy(server.url)
  const direct = createClient({ url: server.url, token: tokens.admin, directory })
  const client = createClient({ url: proxy.url, token: tokens.admin, directory })
  const session = await direct.sessions.create()
  const remote = await client.sessions.get(session.id)
  if (!remote) throw new Error("the session does not exist")
  const { url } = server
  return {
    client,
    remote,
    session,
    proxy,
    store,
    model,
    url,
    directory,
    [Symbol.asyncDispose]: proxy[Symbol.asyncDispose],
  }
}

/** Reads until the view has the number of the session's last change, after the end of the run. */
async function readToEnd(
  events: AsyncIterable<SessionEvent>,
  session: SessionClient,
  leave: AbortController,
) {
  const view = createView()
  const end = session.wait().then(async () => (await session.info()).seq)
  let last = Number.POSITIVE_INFINITY
  void end.then((seq) => {
    last = seq
    if ((view.seen.at(-1) ?? 0) >= last) leave.abort()
  })
  for await (const event of events) {
    view.apply(event)
    if ((view.seen.at(-1) ?? 0) >= last) break
  }
  return view
}

describe("an event stream", () => {
  test.each([500, 900, 1_500, 3_000])(
    "that breaks repeatedly after more than %i bytes loses and repeats nothing",
    async (bytes) => {
      await using connected = await connect()
      const { proxy, session, remote } = connected
      const leave = new AbortController()
      const events = remote.events({ after: 0, signal: leave.signal })
      proxy.cut()
      proxy.cutAfter(bytes, 2_000)
      await session.send("go")
      const view = await readToEnd(events, session, leave)
      expect(view.messages).toEqual(await session.messages())
      expect(view.seen).toEqual([...new Set(view.seen)].sort((a, b) => a - b))
      expect(proxy.connections).toBeGreaterThan(3)
    },
  )

  test("continues after the server was away", async () => {
    await using connected = await connect()
    const { proxy, session, remote } = connected
    const leave = new AbortController()
    const events = remote.events({ after: 0, signal: leave.signal })
    await events.next()
    proxy.refuse()
    await session.send("go")
    await session.wait()
    const before = proxy.connections
    const reading = readToEnd(events, session, leave)
    await expect.poll(() => proxy.connections).toBeGreaterThan(before)
    proxy.accept()
    expect((await reading).messages).toEqual(await session.messages())
  })

  test("connects again if its connection is silent", async () => {
    await using connected = await connect()
    const { proxy, session } = connected
    const impatient = createClient({ url: proxy.url, token: tokens.admin, silenceMs: 1_000 })
    const remote = await impatient.sessions.get(session.id)
    if (!remote) throw new Error("the session does not exist")
    const leave = new AbortController()
    const events = remote.events({ after: 0, signal: leave.signal })
    await events.next()
    proxy.freeze()
    await session.send("go")
    const view = await readToEnd(events, session, leave)
    expect(view.messages).toEqual(await session.messages())
  })

  test("without a number starts with the events after the call, also if the server is away at first", async () => {
    await using connected = await connect()
    const { proxy, session, remote } = connected
    await session.send("one")
    await session.wait()
    proxy.refuse()
    const events = remote.events()
    await expect.poll(() => proxy.connections).toBeGreaterThan(2)
    proxy.accept()
    await remote.send("two")
    expect((await events.next()).value).toMatchObject({ type: "input.updated", input: { text: "two" } })
    await events.return?.()
    await session.wait()
  })

  test("repeats a permission request that was made while it was interrupted", async () => {
    await using connected = await connect(script, { "*": "ask" })
    const { client, proxy, session, remote } = connected
    const events = remote.events()
    await remote.info()
    proxy.refuse()
    await session.send("go")
    await expect.poll(async () => (await session.info()).status).toBe("waiting")
    proxy.accept()
    const asked: string[] = []
    for await (const event of events) {
      if (event.type === "permission.asked") {
        asked.push(event.request.id)
        await client.reply(event.request.id, { reply: "once" })
      }
      if (event.type === "run.completed") break
    }
    expect(new Set(asked).size).toBe(asked.length)
    expect(await session.wait()).toMatchObject({ status: "completed" })
  })

  test("reads the session again if the server does not know the number", async () => {
    await using connected = await connect()
    const { session, remote } = connected
    await session.send("go")
    await session.wait()
    const view = createView()
    const { seq } = await session.info()
    const kinds: string[] = []
    for await (const event of remote.events({ after: seq + 10 })) {
      kinds.push(event.type)
      view.apply(event)
      if (view.seen.at(-1) === seq) break
    }
    expect(kinds[0]).toBe("reset")
    expect(view.messages).toEqual(await session.messages())
  })

  test("ends when the session is deleted", async () => {
    await using connected = await connect()
    const { client, session, remote } = connected
    const events = remote.events()
    await client.sessions.delete(session.id)
    for await (const event of events) expect(event.type).toBe("session.deleted")
    expect((await events.next()).done).toBe(true)
  })

  test("reports that the server refuses it", async () => {
    await using connected = await connect()
    const { proxy, session } = connected
    const stranger = createClient({ url: proxy.url, token: "wrong", retryMs: 0 })
    await expect(stranger.sessions.get(session.id)).rejects.toMatchObject({
      code: "token.invalid",
      status: 401,
    })
    const problem = await new Promise((resolve) => {
      createClient({ url: proxy.url, token: "wrong", onProblem: resolve }).subscribe(() => {})
    })
    expect(problem).toMatchObject({ code: "token.invalid" })
  })
})

describe("a request", () => {
  test("whose answer is lost is sent again, and the input runs once", async () => {
    await using connected = await connect()
    const { proxy, session, remote, model } = connected
    proxy.cut()
    proxy.cutAfter(20)
    const sending = remote.send("go")
    await expect.poll(async () => (await session.messages()).length).toBeGreaterThan(0)
    proxy.cutAfter(Number.POSITIVE_INFINITY)
    await sending
    await session.wait()
    const texts = (await session.messages()).filter(({ message }) => message.role === "user")
    expect(texts).toHaveLength(1)
    expect(model.requests).toHaveLength(4)
  })

  test("waits for a server that is away, until the time limit", async () => {
    await using connected = await connect()
    const { proxy, session } = connected
    proxy.refuse()
    const hasty = createClient({ url: proxy.url, token: tokens.admin, retryMs: 0 })
    const error = await hasty.sessions.get(session.id).catch((error: unknown) => error)
    expect(error).toBeInstanceOf(ClientError)
    expect(error).toMatchObject({ code: "client.unreachable", message: expect.stringContaining(proxy.url) })
  })

  test("is repeated without a limit while the server accepts it and its connection breaks later", async () => {
    let broken = 0
    const server = createServer((incoming, outgoing) => {
      if (broken === 2) outgoing.setHeader("content-type", "application/json").end('{"items":[]}')
      else
        setTimeout(() => {
          broken += 1
          incoming.socket.destroy()
        }, 1_200)
    })
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    onTestFinished(() => void server.close())
    const { port } = server.address() as AddressInfo
    const client = createClient({ url: `http://127.0.0.1:${port}`, token: "x", retryMs: 1_000 })
    expect(await client.sessions.list()).toEqual([])
    expect(broken).toBe(2)
  })

  test("that cannot be repeated fails if the connection breaks", async () => {
    await using connected = await connect()
    const { proxy, client } = connected
    proxy.refuse()
    await expect(client.reply("per_1", { reply: "once" })).rejects.toMatchObject({
      code: "client.unreachable",
    })
  })

  test("names another kind of server", async () => {
    await using connected = await connect()
    const { model } = connected
    const lost = createClient({ url: model.url, token: "x", retryMs: 0 })
    await expect(lost.sessions.get("x")).rejects.toMatchObject({ code: "client.response" })
  })

  test("uses the given fetch", async () => {
    const asked: string[] = []
    const answer = async (url: unknown) => {
      asked.push(String(url))
      return Response.json({ items: [] })
    }
    const client = createClient({
      url: "http://tackle.test/",
      token: "x",
      directory: "/p q",
      fetch: answer as typeof fetch,
    })
    expect(await client.sessions.list({ limit: 5 })).toEqual([])
    expect(asked).toEqual(["http://tackle.test/session?directory=%2Fp+q&limit=5"])
  })

  test("lists 100 sessions by default, and with a higher limit reads further pages", async () => {
    const asked: number[] = []
    const answer = async (url: unknown) => {
      const { searchParams } = new URL(String(url))
      const count = Number(searchParams.get("limit"))
      asked.push(count)
      return Response.json({ items: Array.from({ length: count }, () => ({})), next: "more" })
    }
    const client = createClient({ url: "http://tackle.test/", token: "x", fetch: answer as typeof fetch })
    expect(await client.sessions.list()).toHaveLength(100)
    expect(await client.sessions.list({ limit: 1_200 })).toHaveLength(1_200)
    expect(asked).toEqual([100, 1_000, 200])
  })
})

test("`wait` returns the end of a run that takes ten minutes", async () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  const end = Date.now() + 600_000
  const run = { type: "run.completed", sessionID: "ses_1", status: "completed" }
  /** Answers like a server: when the run ends, or after the time in the query. */
  async function answer(input: unknown, { signal }: RequestInit = {}): Promise<Response> {
    const { pathname, searchParams } = new URL(String(input))
    if (!pathname.endsWith("/wait")) return Response.json({ id: "ses_1" })
    const waitMs = Math.min(Number(searchParams.get("timeout")) * 1000, end - Date.now())
    await new Promise<void>((resolve, reject) => {
      setTimeout(resolve, waitMs)
      signal?.addEventListener("abort", () => reject(signal.reason))
    })
    return Response.json(Date.now() < end ? { status: "running" } : { status: "idle", run })
  }
  const client = createClient({ url: "http://tackle.test", token: "x", fetch: answer as typeof fetch })
  const session = await client.sessions.get("ses_1")
  const waiting = expect(session?.wait()).resolves.toEqual(run)
  await vi.advanceTimersByTimeAsync(600_000)
  await waiting
})

test("a read after `events` waits until the stream is open, so that no request is missed in between", async () => {
  await using connected = await connect(script, { "*": "allow", note: "ask" })
  const { url, directory, session } = connected
  const opened = Promise.withResolvers<void>()
  const client = createClient({
    url,
    token: tokens.admin,
    directory,
    async fetch(input, init) {
      if (String(input).includes("/event")) await opened.promise
      return fetch(input, init)
    },
  })
  const remote = await client.sessions.get(session.id)
  const events = remote?.events({ after: 1 })
  const pending = client.pendingRequests()
  await session.send("go")
  await expect.poll(() => session.info()).toMatchObject({ status: "waiting" })
  opened.resolve()
  expect(await pending).toHaveLength(1)
  await events?.return?.()
  await session.interrupt()
})
