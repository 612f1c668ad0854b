import { expect, test } from "vitest"
import { createMemoryStore } from "../../src/store/memory.ts"
import type { Script } from "../../src/testing/model-server.ts"
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
