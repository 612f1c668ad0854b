import { writeFileSync } from "node:fs"
import { expect, test } from "vitest"
import { readTokenFile } from "../../src/server/tokens.ts"
import { temporaryProject } from "../../src/testing/project.ts"
import { readEvents, setUp, tokens } from "./start-server.ts"

/** `run` belongs to the tenant acme, `reply` to the tenant other, and `admin` to none. */
const lines = [
  { scope: "run", token: tokens.run, tenant: "acme" },
  { scope: "run", token: tokens.reply, tenant: "other" },
  { scope: "admin", token: tokens.admin },
] as const

test("reads tenants from the token file", async () => {
  const project = await temporaryProject({})
  const path = project.path("tokens")
  writeFileSync(path, `run ${tokens.run} tenant=acme\n${tokens.admin}\n`, { mode: 0o600 })
  expect(readTokenFile(path)).toEqual([
    { scope: "run", token: tokens.run, tenant: "acme" },
    { scope: "admin", token: tokens.admin },
  ])
  for (const wrong of ["tenant=", "tenant=a/b", "acme", "tenant=a tenant=b"]) {
    writeFileSync(path, `run ${tokens.run} ${wrong}\n`, { mode: 0o600 })
    expect(() => readTokenFile(path)).toThrow("tenant=NAME")
  }
  await project.remove()
})

test("answers 429 when a tenant has reached a limit, and says when to try again", async () => {
  const { directory, post } = await setUp([{ text: "done", usage: { input: 60, output: 40 } }], {
    tokens: lines,
    engine: { tenants: { acme: { tokensPerDay: 100, queued: 1 } } },
  })
  // A client cannot choose its tenant.
  const chosen = await post("/session", { directory, tenant: "other" }, { scope: "run" })
  expect([chosen.status, chosen.body.error.code]).toEqual([400, "request.invalid"])
  const { body: session } = await post("/session", { directory }, { scope: "run" })
  expect(session.tenant).toBe("acme")
  const path = `/session/${session.id}`
  expect((await post(`${path}/input`, { text: "hi" }, { scope: "run" })).status).toBe(202)
  await post(`${path}/wait`, {}, { scope: "run" })
  const { status, body, headers } = await post(`${path}/input`, { text: "more" }, { scope: "run" })
  expect([status, body.error.code]).toEqual([429, "tenant.tokens"])
  const seconds = Number(headers.get("retry-after"))
  expect(seconds).toBeGreaterThan(0)
  expect(seconds).toBeLessThanOrEqual(86_400)
})

test("lets a token with a tenant use only its own sessions", async () => {
  const { directory, get, post, request, store } = await setUp([], { tokens: lines })
  const create = async (scope: "run" | "reply" | "admin") =>
    (await post("/session", { directory }, { scope })).body.id as string
  const [own, foreign, plain] = [await create("run"), await create("reply"), await create("admin")]
  const { body: listed } = await get("/session", { scope: "run" })
  expect(listed.items.map(({ id }: { id: string }) => id)).toEqual([own])
  expect((await get("/session")).body.items).toHaveLength(3)

  for (const id of [foreign, plain, "ses_missing", `${own}%2F..%2F${foreign}`])
    for (const [method, rest] of [
      ["GET", ""],
      ["GET", "/message"],
      ["POST", "/input"],
      ["POST", "/fork"],
      ["GET", "/export"],
    ] as const) {
      const { status } = await request(method, `/session/${id}${rest}`, {
        scope: "run",
        body: method === "POST" ? { text: "hi" } : undefined,
      })
      expect([403, 404]).toContain(status)
    }
  expect(await store.inputs(foreign)).toEqual([])
  expect((await get(`/request?session=${foreign}`, { scope: "run" })).status).toBe(404)
  expect((await get(`/request?session=${own}`, { scope: "run" })).status).toBe(200)
  expect((await get(`/session/${own}`, { scope: "run" })).status).toBe(200)

  // Routes that show other sessions or the files of a project.
  for (const path of ["/request", "/grant", "/find/file?query=a", "/opencode/session", "/file"])
    expect((await get(path, { scope: "run" })).body.error.code).toBe("tenant.forbidden")
  expect((await get("/request", { scope: "run" })).body.error.message).toContain("query parameter `session`")
  expect((await get("/grant", { scope: "run" })).body.error.message).toContain("cannot use GET /grant")
  expect((await get("/agent", { scope: "run" })).status).toBe(200)

  const { body: archive } = await get(`/session/${plain}/export`)
  const imported = await post("/session/import", { directory, archive, copy: true }, { scope: "run" })
  expect(imported.body.tenant).toBe("acme")
  const fork = await post(`/session/${own}/fork`, {}, { scope: "run" })
  expect(fork.body.tenant).toBe("acme")
})

test("sends a token with a tenant the events of no other tenant", async () => {
  const { directory, post, request, server } = await setUp(() => ({ text: "Hello." }), { tokens: lines })
  const create = async (scope: "run" | "reply" | "admin") =>
    (await post("/session", { directory }, { scope })).body.id as string
  const [own, silent, other, foreign, plain] = [
    await create("run"),
    await create("run"),
    await create("run"),
    await create("reply"),
    await create("admin"),
  ]
  const seen = new Set<string>()
  const url = `${server.url}/event?follow=${own},${foreign}:0,${plain}:0`
  for await (const event of readEvents(url, { token: tokens.run })) {
    if (typeof event === "string") {
      for (const [id, scope] of [
        [foreign, "reply"],
        [plain, "admin"],
        [other, "run"],
      ] as const) {
        await post(`/session/${id}/input`, { text: "Hi" }, { scope })
        await post(`/session/${id}/wait`, {}, { scope })
      }
      for (const id of [foreign, silent]) await request("DELETE", `/session/${id}`)
      continue
    }
    seen.add(event.data.sessionID)
    if (event.data.type === "session.deleted") break
  }
  expect([...seen]).toEqual([other, silent])
})
