import { connect } from "node:net"
import { expect, test } from "vitest"
import { readEvents, type ServerEvent, setUp, tokens } from "./start-server.ts"

test("continues a snapshot without a gap", async () => {
  const { server, get, post, session } = await setUp([{ text: "Hello." }, { text: "Again." }])
  const path = await session()
  await post(`${path}/input`, { text: "Hi" })
  await post(`${path}/wait`)
  const { body: snapshot } = await get(path)
  const events: ServerEvent[] = []
  for await (const event of readEvents(`${server.url}${path}/event?after=${snapshot.seq}`)) {
    if (typeof event === "string") await post(`${path}/input`, { text: "More" })
    else events.push(event)
    if (typeof event !== "string" && event.data.type === "run.completed") break
  }
  const numbers = events.flatMap(({ id }) => (id === undefined ? [] : Number(id)))
  expect(numbers[0]).toBe(snapshot.seq + 1)
  expect(numbers).toEqual(numbers.toSorted((a, b) => a - b))
  expect(events[0]?.data).toMatchObject({ type: "input.updated", input: { text: "More" } })
  expect(events.at(-1)?.data).toMatchObject({ type: "run.completed", text: "Again." })
  for (const { id, data } of events) expect(id).toBe(data.seq === undefined ? undefined : String(data.seq))
})

test("lets Last-Event-ID replace the number of the URL", async () => {
  const { server, get, post, session } = await setUp([{ text: "Hello." }])
  const path = await session()
  await post(`${path}/input`, { text: "Hi" })
  await post(`${path}/wait`)
  const { seq } = (await get(path)).body
  const leave = new AbortController()
  const url = `${server.url}${path}/event?after=0`
  for await (const event of readEvents(url, { lastEventID: String(seq - 1), signal: leave.signal })) {
    if (typeof event === "string") continue
    expect(event.id).toBe(String(seq))
    break
  }
})

test("answers a number from the future with a reset, and an invalid number with an error", async () => {
  const { server, get, session } = await setUp()
  const path = await session()
  const { seq } = (await get(path)).body
  const events: unknown[] = []
  for await (const event of readEvents(`${server.url}${path}/event`, { lastEventID: "999" }))
    if (typeof event !== "string") events.push(event)
  expect(events).toEqual([
    { id: String(seq), data: { type: "reset", sessionID: path.slice(9), seq, reason: "unknown" } },
  ])
  for (const lastEventID of ["-1", "x", "1.5", "1e3", "99999999999999999999"])
    expect(await get(`${path}/event`, { headers: { "last-event-id": lastEventID } })).toMatchObject({
      status: 400,
      body: { error: { code: "request.invalid" } },
    })
  expect((await get(`${path}/event?after=-1`)).status).toBe(400)
})

test("sends the events of all sessions, without numbers to continue with", async () => {
  const { server, post, session } = await setUp(() => ({ text: "Hello." }))
  const [first, second] = [await session(), await session()]
  const ended = new Set<string>()
  for await (const event of readEvents(`${server.url}/event`)) {
    if (typeof event === "string") {
      await post(`${first}/input`, { text: "Hi" })
      await post(`${second}/input`, { text: "Hi" })
    } else if (event.data.type === "run.completed") ended.add(event.data.sessionID)
    else expect(event.id).toBeUndefined()
    if (ended.size === 2) break
  }
  expect([...ended].map((id) => `/session/${id}`).sort()).toEqual([first, second].sort())
})

test("sends the changes of followed sessions, and the events of all other sessions as they happen", async () => {
  const { server, post, session } = await setUp(() => ({ text: "Hello." }))
  const [own, second, other] = [await session(), await session(), await session()]
  const id = (path: string) => path.slice("/session/".length)
  const follow = `${id(own)}:0,${id(second)},ses_unknown:3`
  const seen: string[] = []
  const ended = new Set<string>()
  for await (const event of readEvents(`${server.url}/event?follow=${follow}`)) {
    if (typeof event === "string") {
      for (const path of [other, own, second]) await post(`${path}/input`, { text: "Hi" })
      continue
    }
    const { sessionID, type } = event.data
    seen.push(`${sessionID} ${type}`)
    if (type === "run.completed") ended.add(sessionID)
    if (ended.size === 3) break
  }
  expect([...ended].sort()).toEqual([own, second, other].map(id).sort())
  // The stored session is a change after 0.
  expect(seen[0]).toBe(`${id(own)} session.updated`)
  expect(seen.filter((each) => each === `${id(own)} run.completed`)).toHaveLength(1)
})

test("ends the stream of several sessions after a reset", async () => {
  const { server, session } = await setUp()
  const [first, second] = [await session(), await session()].map((path) => path.slice("/session/".length))
  const events: unknown[] = []
  for await (const event of readEvents(`${server.url}/event?follow=${first}:900,${second}:0`))
    if (typeof event !== "string") events.push(event.data)
  expect(events).toContainEqual({ type: "reset", sessionID: first, seq: 1, reason: "unknown" })
})

test("sends comments while nothing happens", async () => {
  const { server, session } = await setUp([], { heartbeatMs: 20 })
  const path = await session()
  const comments: string[] = []
  for await (const event of readEvents(`${server.url}${path}/event`)) {
    comments.push(String(event))
    if (comments.length === 3) break
  }
  expect(comments).toEqual(["retry: 1000", ": heartbeat", ": heartbeat"])
})

test("sends a reset to a client that does not read, and ends its stream", async () => {
  const { server, get, post, session } = await setUp(
    () => ({ text: "word ".repeat(200_000), pieceSize: 100_000 }),
    { maxWaiting: 5 },
  )
  const path = await session()
  const { port, hostname } = new URL(server.url)
  const socket = connect(Number(port), hostname)
  socket.write(
    `GET ${path}/event?after=0 HTTP/1.1\r\nHost: ${hostname}:${port}\r\nAuthorization: Bearer ${tokens.read}\r\n\r\n`,
  )
  await new Promise((resolve) => socket.once("readable", resolve))
  // More than the buffers of both sockets.
  for (let count = 0; count < 10; count += 1) await post(`${path}/input`, { text: "Hi", delivery: "queue" })
  expect((await post(`${path}/wait`)).body.run.status).toBe("completed")
  let text = ""
  socket.setEncoding("utf8").on("data", (chunk: string) => {
    text += chunk
  })
  await expect.poll(() => text.includes("0\r\n\r\n")).toBe(true)
  socket.destroy()
  const last = text.trimEnd().split("data: ").at(-1) ?? ""
  const reset = JSON.parse(last.slice(0, last.indexOf("\n")))
  expect(reset).toMatchObject({ type: "reset", reason: "behind" })
  expect(reset.seq).toBeLessThan((await get(path)).body.seq)
})

test("sends a history that is larger than one write completely and in order", async () => {
  const { server, get, post, session } = await setUp(() => ({ text: "word ".repeat(20_000) }))
  const path = await session()
  for (let count = 0; count < 5; count += 1) {
    await post(`${path}/input`, { text: `Prompt ${count}` })
    await post(`${path}/wait`)
  }
  const { seq } = (await get(path)).body
  const numbers: number[] = []
  const parts = new Map<string, unknown>()
  for await (const event of readEvents(`${server.url}${path}/event?after=0`)) {
    if (typeof event === "string") continue
    numbers.push(Number(event.id))
    if (event.data.type === "part.updated") parts.set(event.data.part.id, event.data.part)
    if (event.data.seq === seq) break
  }
  expect(numbers).toEqual(numbers.toSorted((a, b) => a - b))
  const { items } = (await get(`${path}/message`)).body
  const stored = items.flatMap((item: { parts: { id: string }[] }) => item.parts)
  expect(stored.map(({ id }: { id: string }) => parts.get(id))).toEqual(stored)
})

test("continues the run when a client leaves in the middle of the stream", async () => {
  const { server, post, get, session, problems } = await setUp([
    { text: "word ".repeat(100), pieceSize: 10, pieceDelayMs: 2 },
  ])
  const path = await session()
  await post(`${path}/input`, { text: "Hi" })
  for await (const event of readEvents(`${server.url}${path}/event?after=0`))
    if (typeof event !== "string" && event.data.type === "part.delta") break
  expect((await post(`${path}/wait`)).body.run).toMatchObject({ status: "completed" })
  expect((await get(`${path}/message`)).body.items).toHaveLength(2)
  expect(problems).toEqual([])
})

test("ends the streams of a deleted session with its last event", async () => {
  const { server, request, session } = await setUp()
  const path = await session()
  const events: unknown[] = []
  for await (const event of readEvents(`${server.url}${path}/event`)) {
    if (event === "retry: 1000") expect((await request("DELETE", path)).status).toBe(204)
    else events.push(event)
  }
  expect(events).toMatchObject([{ data: { type: "session.deleted", session: { id: path.slice(9) } } }])
  await expect(readEvents(`${server.url}${path}/event`).next()).rejects.toThrow("404")
})

test("answers other requests while 200 clients never read", async () => {
  const { server, get, post, session } = await setUp(
    () => ({ text: "word ".repeat(20_000), pieceSize: 10_000 }),
    { maxWaiting: 5 },
  )
  const path = await session()
  const { port, hostname } = new URL(server.url)
  const opened = Array.from({ length: 200 }, async () => {
    const socket = connect(Number(port), hostname)
    const headers = `Host: ${hostname}:${port}\r\nAuthorization: Bearer ${tokens.read}`
    socket.write(`GET ${path}/event?after=0 HTTP/1.1\r\n${headers}\r\n\r\n`)
    await new Promise((resolve) => socket.once("readable", resolve))
    return socket
  })
  const clients = await Promise.all(opened)
  for (let count = 0; count < 10; count += 1) await post(`${path}/input`, { text: "Hi", delivery: "queue" })
  expect((await post(`${path}/wait`)).body.run.status).toBe("completed")
  expect((await get(path)).body.status).toBe("idle")
  for (const client of clients) client.destroy()
})

test("ends all open streams when the server closes", async () => {
  const { server, post, session } = await setUp([{ fault: "hang" }])
  const path = await session()
  await post(`${path}/input`, { text: "Hi" })
  const paths = ["/event", `${path}/event`, "/opencode/event", `${path}/chat/c/stream`]
  const opened = await Promise.all(
    paths.map((each) =>
      fetch(`${server.url}${each}`, { headers: { authorization: `Bearer ${tokens.read}` } }),
    ),
  )
  expect(opened.map(({ status }) => status)).toEqual([200, 200, 200, 200])
  const texts = opened.map((response) => response.text())
  await server.close()
  expect(await Promise.all(texts)).toHaveLength(4)
})
