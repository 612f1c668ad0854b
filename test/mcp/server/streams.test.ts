import { existsSync } from "node:fs"
import { writeFile } from "node:fs/promises"
import { expect, onTestFinished, test, vi } from "vitest"
import * as z from "zod"
import { createEventStore } from "../../../src/mcp/server/http-sessions.ts"
import { Tool } from "../../../src/tool/index.ts"
import { connect, key, serve } from "./serve.ts"

/** Starts a server with a tool that ends after `go` was called. */
async function serveWaiting(streamMs?: number) {
  let path = ""
  const waits = Tool.define("waits", {
    description: "Waits for a file.",
    parameters: z.object({}),
    async execute() {
      await vi.waitFor(() => expect(existsSync(path)).toBe(true), { timeout: 20_000, interval: 20 })
      return { title: "waits", output: "it is there" }
    },
  })
  const served = await serve(
    { connection: streamMs === undefined ? {} : { streamMs } },
    { tools: [waits], permission: { "*": "allow" } },
  )
  path = served.project.path("go")
  return { ...served, go: () => writeFile(path, "") }
}

/** Sends raw requests in a session of this protocol version. */
async function openSession(url: URL, protocolVersion = "2025-11-25") {
  const headers = {
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    authorization: `Bearer ${key}`,
    "mcp-protocol-version": protocolVersion,
  }
  const post = (message: object, more: object = {}) =>
    fetch(url, {
      method: "POST",
      headers: { ...headers, ...more },
      body: JSON.stringify({ jsonrpc: "2.0", ...message }),
    })
  const clientInfo = { name: "raw", version: "1" }
  const params = { protocolVersion, capabilities: {}, clientInfo }
  const first = await post({ id: 1, method: "initialize", params })
  const session = { "mcp-session-id": first.headers.get("mcp-session-id") ?? "" }
  await first.text()
  return {
    call: (id: number) =>
      post({ id, method: "tools/call", params: { name: "waits", arguments: {} } }, session),
    comeBack: (lastID: string) =>
      fetch(url, { headers: { ...headers, ...session, "last-event-id": lastID } }),
  }
}

const lastID = (text: string) => [...text.matchAll(/^id: (.*)$/gm)].at(-1)?.[1] ?? ""

/** Reads until the text arrives and drops the rest. */
async function readUntil(answer: Response, wanted: string): Promise<string> {
  let text = ""
  for await (const chunk of answer.body ?? []) {
    text += new TextDecoder().decode(chunk)
    if (text.includes(wanted)) return text
  }
  return text
}

test("resumes a stream that the server ended when the client reconnects", async () => {
  const { url, go } = await serveWaiting(50)
  const { call, comeBack } = await openSession(url)
  // The stream ends while the call runs.
  const text = await (await call(2)).text()
  expect(text).not.toContain("it is there")
  expect(text).toContain("retry: ")
  const rest = await comeBack(lastID(text))
  await go()
  expect(await rest.text()).toContain("it is there")
})

test("works with the SDK's client", async () => {
  const { url, go } = await serveWaiting(1)
  const { client } = await connect(url)
  const call = client.callTool({ name: "waits", arguments: {} })
  await client.ping()
  await go()
  expect(await call).toMatchObject({ content: [{ text: "it is there" }] })
})

test("keeps the stream of a client with an older protocol open", async () => {
  const { url, go } = await serveWaiting(1)
  const { call } = await openSession(url, "2025-06-18")
  const called = await call(2)
  const timer = setTimeout(go, 100)
  onTestFinished(() => clearTimeout(timer))
  expect(await called.text()).toContain("it is there")
})

test("replays missed messages of the same stream only", async () => {
  const { url, go } = await serveWaiting()
  const { call, comeBack } = await openSession(url)
  const [cut, other] = [await readUntil(await call(2), "\n\n"), await call(3)]
  await go()
  const others = await other.text()
  expect(others).toContain('"id":3')
  const rest = await (await comeBack(lastID(cut))).text()
  expect(rest).toContain("it is there")
  expect(rest).not.toContain('"id":3')
  expect((await comeBack("made-up")).status).toBe(400)
  // Messages of another client are not available.
  const stranger = await openSession(url)
  expect((await stranger.comeBack(lastID(others))).status).toBe(400)
})

test("limits the kept messages, and refuses to resume after a dropped one", async () => {
  const message = (text: string) => ({ jsonrpc: "2.0" as const, method: "sent", params: { text } })
  const few = createEventStore({ messages: 3, bytes: 1000 })
  const ids = [await few.storeEvent("a", {} as never)]
  for (const text of ["1", "2"]) ids.push(await few.storeEvent("a", message(text)))
  const seen: unknown[] = []
  const send = async (_id: string, sent: unknown) => void seen.push(sent)
  expect(await few.replayEventsAfter(ids[0] ?? "", { send })).toBe("a")
  expect(seen).toEqual([message("1"), message("2")])
  await few.storeEvent("b", message("3"))
  expect(await few.getStreamIdForEventId(ids[0] ?? "")).toBeUndefined()
  expect(await few.getStreamIdForEventId(ids[1] ?? "")).toBe("a")
  const large = await few.storeEvent("a", message("x".repeat(2000)))
  expect(await few.getStreamIdForEventId(ids[2] ?? "")).toBeUndefined()
  expect(await few.getStreamIdForEventId(large)).toBe("a")
})
