import { expect, test } from "vitest"
import { setUp } from "./start-server.ts"

/** Starts a server whose model answers "First" only when `open` is called, and sends this prompt. */
async function busy() {
  const gate = Promise.withResolvers<void>()
  const setup = await setUp(async ({ body: { messages } }) => {
    if (messages.at(-1)?.content === "First") await gate.promise
    return { text: "Hello." }
  })
  const path = await setup.session()
  await setup.post(`${path}/input`, { text: "First" })
  await expect.poll(() => setup.model.requests.length).toBe(1)
  return { ...setup, path, open: gate.resolve }
}

test("stores an input once, and refuses its id with another content", async () => {
  const { post, get, path, open } = await busy()
  const input = { id: "one", text: "Later", delivery: "queue" }
  const answers = await Promise.all(Array.from({ length: 5 }, () => post(`${path}/input`, input)))
  for (const { status, body } of answers) expect([status, body]).toEqual([202, answers[0]?.body])
  for (const change of [{ text: "Other" }, { delivery: "steer" }]) {
    const { status, body } = await post(`${path}/input`, { ...input, ...change })
    expect([status, body.error.code]).toEqual([409, "input.conflict"])
  }
  expect((await get(`${path}/input`)).body.items).toMatchObject([input])
  open()
  await post(`${path}/wait`)
  expect((await post(`${path}/input`, input)).body).toMatchObject({ id: "one", state: "promoted" })
  expect((await get(`${path}/input/one`)).body).toMatchObject({ state: "promoted", text: "Later" })
})

test("edits, moves, holds and withdraws pending inputs", async () => {
  const { post, get, request, path, open, model } = await busy()
  for (const id of ["a", "b", "c"]) await post(`${path}/input`, { id, text: id, delivery: "queue" })
  const change = (id: string, body: unknown) => request("PATCH", `${path}/input/${id}`, { body })
  const order = async () => (await get(`${path}/input`)).body.items.map(({ text }: { text: string }) => text)
  expect((await change("c", { position: 0, text: "C" })).body).toMatchObject({ text: "C", position: 1 })
  expect(await order()).toEqual(["C", "a", "b"])
  expect((await change("a", { held: true })).body).toMatchObject({ held: true })
  expect((await request("DELETE", `${path}/input/b`)).body).toMatchObject({ state: "withdrawn" })
  expect((await change("b", { text: "B" })).body.error.code).toBe("input.ended")
  for (const invalid of [
    { position: -1 },
    { position: 0.5 },
    { text: " " },
    { delivery: "later" },
    { held: "x" },
  ])
    expect((await change("a", invalid)).status, JSON.stringify(invalid)).toBe(400)
  open()
  await expect.poll(order).toEqual(["a"])
  await post(`${path}/wait`)
  await change("a", { held: false })
  await post(`${path}/wait`)
  const prompts = model.requests.map(({ body }) => body.messages.at(-1)?.content)
  expect(prompts).toEqual(["First", "C", "a"])
})

test("steers a run, and interrupts it with `now`", async () => {
  const { post, get, path, open } = await busy()
  await post(`${path}/input`, { text: "Steer" })
  await post(`${path}/input`, { text: "Now", delivery: "now" })
  open()
  expect((await post(`${path}/wait`)).body.run).toMatchObject({ status: "completed" })
  const texts = (await get(`${path}/message`)).body.items
    .filter(({ message }: { message: { role: string } }) => message.role === "user")
    .map(({ parts }: { parts: { text: string }[] }) => parts[0]?.text)
  expect(texts).toEqual(["First", "Now", "Steer"])
})

test("interrupts a run and keeps or returns the queue", async () => {
  const { post, get, path } = await busy()
  await post(`${path}/input`, { id: "next", text: "Next", delivery: "queue" })
  expect((await post(`${path}/interrupt`)).body).toEqual({ withdrawn: [] })
  expect((await get(path)).body.status).toBe("idle")
  expect((await get(`${path}/input`)).body.items).toMatchObject([{ id: "next", paused: true }])
  expect((await post(`${path}/interrupt`, { clear: true })).body.withdrawn).toMatchObject([{ id: "next" }])
  expect((await get(`${path}/input`)).body.items).toEqual([])
  expect((await post(`${path}/wait`)).body.run).toMatchObject({ status: "interrupted" })
})

test("interrupts without a body", async () => {
  const { request, session } = await setUp()
  const path = await session()
  for (const headers of [undefined, { "content-type": "application/json" }])
    expect(await request("POST", `${path}/interrupt`, { headers })).toMatchObject({
      status: 200,
      body: { withdrawn: [] },
    })
})

test("answers wait with the status after the timeout", async () => {
  const { post, path, open } = await busy()
  expect((await post(`${path}/wait?timeout=0.05`)).body).toEqual({ status: "running" })
  for (const timeout of ["-1", "x", "1e9"])
    expect((await post(`${path}/wait?timeout=${timeout}`)).status, timeout).toBe(400)
  open()
  expect((await post(`${path}/wait?timeout=20`)).body).toMatchObject({ status: "idle", run: {} })
})

test("refuses inputs that cannot be delivered", async () => {
  const { post, session } = await setUp()
  const path = await session()
  for (const invalid of [
    {},
    { text: "" },
    { text: "Hi", parts: [{ type: "text", text: "Hi" }] },
    { parts: [] },
    { parts: [{ type: "image" }] },
    { parts: [{ type: "file", mime: "text/plain", url: "/etc/passwd" }] },
    { parts: [{ type: "file", mime: "text/plain", url: "file:///etc/passwd" }] },
    { parts: [{ type: "file", mime: "text/plain", url: "data:text/plain,%" }] },
    { text: "Hi", id: "" },
    { text: "Hi", id: "a/b" },
    { text: "Hi", id: "x".repeat(201) },
    { text: "Hi", delivery: "later" },
    { text: 1 },
    { text: "Hi", extra: 1 },
  ])
    expect((await post(`${path}/input`, invalid)).status, JSON.stringify(invalid)).toBe(400)
})

test("sends files as parts", async () => {
  const { post, session, model } = await setUp([{ text: "Hello." }])
  const path = await session()
  const url = `data:text/plain;base64,${Buffer.from("content of the note").toString("base64")}`
  const parts = [
    { type: "text", text: "Read this." },
    { type: "file", mime: "text/plain", url, filename: "note.txt" },
  ]
  expect((await post(`${path}/input`, { parts })).status).toBe(202)
  await post(`${path}/wait`)
  expect(JSON.stringify(model.requests[0]?.body.messages.at(-1))).toContain("content of the note")
})

test("runs a command that a prompt names", async () => {
  const { post, session, model } = await setUp(() => ({ text: "Hello." }), {
    engine: { commands: { review: { template: "Review $ARGUMENTS carefully." } } },
  })
  const path = await session()
  await post(`${path}/input`, { text: "/review the diff" })
  await post(`${path}/wait`)
  expect(JSON.stringify(model.requests[0]?.body.messages.at(-1))).toContain("Review the diff carefully.")
})

test("reports a run that fails", async () => {
  const { post, session } = await setUp([{ status: 400, text: "No such model." }])
  const path = await session()
  await post(`${path}/input`, { text: "Hi" })
  expect((await post(`${path}/wait`)).body.run).toMatchObject({ status: "failed" })
})
