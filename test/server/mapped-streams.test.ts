import { connect } from "node:net"
import { Hono } from "hono"
import { expect, test } from "vitest"
import type { ServerContext } from "../../src/server/context.ts"
import { respondWithItems } from "../../src/server/mapped-stream.ts"
import { createMemoryStore } from "../../src/store/memory.ts"
import type { Script } from "../../src/testing/model-server.ts"
import { aSession } from "../suites/records.ts"
import { setUp, tokens } from "./start-server.ts"

const asks: Script = ({ body: { messages } }) =>
  messages.at(-1)?.role === "user"
    ? {
        text: `You said ${JSON.stringify(messages.at(-1)?.content)}.`,
        calls: [{ name: "bash", arguments: { command: "touch made", description: "Make a file" } }],
      }
    : { text: "It is done." }

const chat = (id: string, text: string) => ({
  messages: [{ id, role: "user", parts: [{ type: "text", text }] }],
})

const agui = (id: string, content: string, more: object = {}) => ({
  threadId: "t",
  runId: "r",
  messages: [{ id, role: "user", content }],
  ...more,
})

/** Starts a server whose permission requests wait. */
const withRequests = (options: Parameters<typeof setUp>[1] = {}) =>
  setUp(asks, { engine: { permission: { bash: "ask" } }, ...options })

test.for([
  { protocol: "chat", body: chat },
  { protocol: "agui", body: agui },
])("$protocol: a stream whose input is withdrawn ends", async ({ protocol, body }) => {
  const { request, session } = await withRequests()
  const path = await session()
  await request("POST", `${path}/input`, { body: { text: "first" } })
  await expect.poll(async () => (await request("GET", path)).body.status).toBe("waiting")
  const second = request("POST", `${path}/${protocol}`, { body: body("two", "second") })
  await expect.poll(async () => (await request("GET", `${path}/input`)).body.items).toHaveLength(1)
  await request("DELETE", `${path}/input/two`)
  const { status, body: text } = await second
  expect(status).toBe(200)
  expect(text).not.toContain("You said")
})

test("chat: a stream contains only the answer to its own input", async () => {
  const { request, session } = await setUp(asks, { engine: { permission: { bash: "ask" } } })
  const path = await session()
  await request("POST", `${path}/input`, { body: { text: "first" } })
  await expect.poll(async () => (await request("GET", path)).body.status).toBe("waiting")
  const second = request("POST", `${path}/chat`, { body: chat("two", "second") })
  await expect.poll(async () => (await request("GET", `${path}/input`)).body.items).toHaveLength(1)
  const [{ id }] = (await request("GET", "/request")).body.items
  await request("POST", `/request/${id}/reply`, { body: { reply: "reject" } })
  const { body: text } = await second
  expect(text).toContain("second")
  expect(text).not.toContain("It is done.")
})

test("agui: a text that is sent again is not run again, and the stream ends", async () => {
  const { request, session, model } = await setUp(() => ({ text: "Hello." }))
  const path = await session()
  const first = await request("POST", `${path}/agui`, { body: agui("one", "hello") })
  expect(first.body).toContain("Hello.")
  const again = await request("POST", `${path}/agui`, { body: agui("one", "hello") })
  expect(again.body).toContain("RUN_FINISHED")
  expect(model.requests).toHaveLength(1)
})

test.for([
  { protocol: "chat", body: chat },
  { protocol: "agui", body: agui },
])("$protocol: the id of another text is a conflict", async ({ protocol, body }) => {
  const { request, session, problems } = await setUp(() => ({ text: "Hello." }))
  const path = await session()
  await request("POST", `${path}/${protocol}`, { body: body("one", "hello") })
  const other = await request("POST", `${path}/${protocol}`, { body: body("one", "other") })
  expect(other).toMatchObject({ status: 409, body: { error: { code: "input.conflict" } } })
  expect(problems).toEqual([])
})

test("chat: an answer without approvals is refused instead of waiting for ever", async () => {
  const { request, session } = await setUp(() => ({ text: "Hello." }))
  const path = await session()
  const last = { id: "a", role: "assistant", parts: [], metadata: { tackle: { sessionID: "x", seq: 0 } } }
  expect(await request("POST", `${path}/chat`, { body: { messages: [last] } })).toMatchObject({ status: 400 })
})

test.for(["chat", "agui"])("%s: only requests of the session are answered", async (protocol) => {
  const { request, session } = await withRequests()
  const [asking, other] = [await session(), await session()]
  await request("POST", `${asking}/input`, { body: { text: "first" } })
  await expect.poll(async () => (await request("GET", asking)).body.status).toBe("waiting")
  const [{ id }] = (await request("GET", "/request")).body.items
  const approval = { type: "dynamic-tool", toolCallId: "c", state: "approval-responded" }
  const body =
    protocol === "agui"
      ? agui("x", "", {
          resume: [{ interruptId: `${id}@0`, status: "resolved", payload: { approved: true } }],
        })
      : {
          messages: [
            {
              id: "a",
              role: "assistant",
              metadata: { tackle: { sessionID: "x", seq: 0 } },
              parts: [{ ...approval, approval: { id, approved: true } }],
            },
          ],
        }
  const answer = await request("POST", `${other}/${protocol}`, { body })
  expect(answer).toMatchObject({ status: 404, body: { error: { code: "request.unknown" } } })
  expect((await request("GET", "/request")).body.items).toHaveLength(1)
})

test("agui: a stream that continues after a number the session does not have ends with an error", async () => {
  const { request, session } = await withRequests()
  const path = await session()
  await request("POST", `${path}/input`, { body: { text: "first" } })
  await expect.poll(async () => (await request("GET", path)).body.status).toBe("waiting")
  const [{ id }] = (await request("GET", "/request")).body.items
  const resume = [{ interruptId: `${id}@9999`, status: "resolved", payload: { approved: true } }]
  const { body: text } = await request("POST", `${path}/agui`, { body: agui("x", "", { resume }) })
  expect(text).toContain("The session has no event with the requested number.")
})

test("a client that leaves while nothing happens frees its subscriptions", async () => {
  const store = createMemoryStore()
  let watching = 0
  const counted = {
    ...store,
    watch(listener: () => void) {
      watching += 1
      const unwatch = store.watch(listener)
      return () => {
        watching -= 1
        unwatch()
      }
    },
  }
  const { request, server, session } = await withRequests({ store: counted })
  const path = await session()
  await request("POST", `${path}/input`, { body: { text: "first" } })
  await expect.poll(async () => (await request("GET", path)).body.status).toBe("waiting")
  const before = watching
  const leave = new AbortController()
  const opened = Array.from({ length: 5 }, (_, index) =>
    fetch(`${server.url}${path}/chat`, {
      method: "POST",
      headers: { authorization: `Bearer ${tokens.run}`, "content-type": "application/json" },
      body: JSON.stringify(chat(`n${index}`, "later")),
      signal: leave.signal,
    }),
  )
  await expect.poll(() => watching).toBe(before + 5)
  leave.abort()
  await Promise.allSettled(opened)
  await expect.poll(() => watching).toBe(before)
})

test("files of other protocols must be data URLs, as in the API", async () => {
  const { request, session, model } = await setUp(() => ({ text: "Hello." }))
  const path = await session()
  const url = "file:///etc/hostname"
  const file = { type: "file", url, mediaType: "text/plain", mime: "text/plain" }
  const messages = [{ id: "one", role: "user", parts: [file] }]
  expect((await request("POST", `${path}/chat`, { body: { messages } })).status).toBe(400)
  for (const route of ["message", "prompt_async"])
    expect(await request("POST", `/opencode${path}/${route}`, { body: { parts: [file] } })).toMatchObject({
      status: 400,
      body: { error: { code: "request.invalid" } },
    })
  expect(model.requests).toHaveLength(0)
})

test("chat: a resumed stream whose run ended while it was opened contains the answer and ends", async () => {
  const store = createMemoryStore()
  const reached = Promise.withResolvers<void>()
  const answer = Promise.withResolvers<void>()
  let onRead: (() => Promise<unknown>) | undefined
  const slow = {
    ...store,
    async messages(...given: Parameters<typeof store.messages>) {
      const waited = onRead
      onRead = undefined
      await waited?.()
      return store.messages(...given)
    },
  }
  const script: Script = async () => {
    reached.resolve()
    await answer.promise
    return { text: "It is done." }
  }
  const { request, session } = await setUp(script, { store: slow })
  const path = await session()
  await request("POST", `${path}/input`, { body: { text: "first" } })
  await reached.promise
  onRead = () => {
    answer.resolve()
    return request("POST", `${path}/wait`)
  }
  const { status, body } = await request("GET", `${path}/chat/c/stream`)
  expect(status).toBe(200)
  expect(body).toContain("It is done.")
  expect(body).toContain('"type":"finish"')
  expect(body.match(/"type":"finish"/g)).toHaveLength(1)
})

test("sends comments while nothing happens", async () => {
  const { server, request, session } = await withRequests({ heartbeatMs: 20 })
  const path = await session()
  await request("POST", `${path}/input`, { body: { text: "first" } })
  await expect.poll(async () => (await request("GET", path)).body.status).toBe("waiting")
  const leave = new AbortController()
  const response = await fetch(`${server.url}${path}/chat`, {
    method: "POST",
    headers: { authorization: `Bearer ${tokens.run}`, "content-type": "application/json" },
    body: JSON.stringify(chat("two", "second")),
    signal: leave.signal,
  })
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
  expect((await reader?.read())?.value).toBe(": heartbeat\n\n")
  leave.abort()
})

test("sends an error to a client that does not read, and ends its stream", async () => {
  const steps = 8
  const script: Script = (_, index) => ({
    text: "word ".repeat(200_000),
    pieceSize: 100_000,
    ...(index < steps && {
      calls: [
        {
          name: "todowrite",
          arguments: { todos: [{ content: `Step ${index}`, status: "pending", priority: "low" }] },
        },
      ],
    }),
  })
  const { server, request, session } = await setUp(script, {
    maxWaiting: 20,
    engine: { permission: { "*": "allow" } },
  })
  const path = await session()
  const { port, hostname } = new URL(server.url)
  const socket = connect(Number(port), hostname)
  const body = JSON.stringify(chat("one", "hello"))
  const headers = `Host: ${hostname}:${port}\r\nAuthorization: Bearer ${tokens.run}\r\nContent-Type: application/json`
  socket.write(`POST ${path}/chat HTTP/1.1\r\n${headers}\r\nContent-Length: ${body.length}\r\n\r\n${body}`)
  await new Promise((resolve) => socket.once("readable", resolve))
  expect((await request("POST", `${path}/wait`)).body.run.status).toBe("completed")
  let text = ""
  socket.setEncoding("utf8").on("data", (chunk: string) => {
    text += chunk
  })
  await expect.poll(() => text.includes("0\r\n\r\n"), { timeout: 10_000 }).toBe(true)
  socket.destroy()
  expect(text).toContain("The client read too slowly.")
})

test("releases the engine and the stream when a mapper throws", async () => {
  const store = createMemoryStore()
  await store.commit([{ kind: "session", session: aSession("ses_1") }])
  const released: string[] = []
  const tackle = { sessions: { get: async () => ({ id: "ses_1" }) } }
  const context = {
    store,
    engines: { assertServed() {}, hold: async () => ({ tackle, release: () => released.push("engine") }) },
    streamSignal: () => ({ signal: new AbortController().signal, release: () => released.push("stream") }),
    heartbeatMs: 1_000,
    maxWaiting: 20,
  } as unknown as ServerContext
  async function* items() {
    yield { type: "start" }
    throw new Error("The mapper does not know this event.")
  }
  const app = new Hono().get("/session/:id", (c) =>
    respondWithItems(context, c, { begin: async () => items() }),
  )
  const response = await app.request("/session/ses_1")
  await expect(response.text()).rejects.toThrow("does not know")
  expect(released).toEqual(["stream", "engine"])
})

test.for([
  {
    protocol: "chat",
    answer: (id: string, sessionID: string) => ({
      messages: [
        {
          id: "a",
          role: "assistant",
          metadata: { tackle: { sessionID, seq: 0 } },
          parts: [
            {
              type: "tool-bash",
              toolCallId: "c",
              state: "approval-responded",
              approval: { id, approved: true },
            },
          ],
        },
      ],
    }),
  },
  {
    protocol: "agui",
    answer: (id: string) => ({
      threadId: "t",
      runId: "r",
      messages: [],
      resume: [{ interruptId: `${id}@0`, status: "resolved", payload: { approved: true } }],
    }),
  },
])(
  "$protocol: does not answer the request of a session in another directory",
  async ({ protocol, answer }) => {
    const { directory, request } = await withRequests({ files: { "a/x": "", "b/x": "" } })
    const create = async (name: string) =>
      (await request("POST", "/session", { body: { directory: `${directory}/${name}` } })).body.id as string
    const [own, other] = [await create("a"), await create("b")]
    await request("POST", `/session/${other}/input`, { body: { text: "first" } })
    await expect.poll(async () => (await request("GET", "/request")).body.items).toHaveLength(1)
    const [{ id }] = (await request("GET", "/request")).body.items
    const { status, body } = await request("POST", `/session/${own}/${protocol}`, { body: answer(id, own) })
    expect([status, body.error?.code]).toEqual([404, "request.unknown"])
    expect((await request("GET", "/request")).body.items).toMatchObject([{ id }])
  },
)
