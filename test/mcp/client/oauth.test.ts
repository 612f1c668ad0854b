import { statSync } from "node:fs"
import { connect } from "node:net"
import { text } from "node:stream/consumers"
import { afterEach, beforeEach, describe, expect, test } from "vitest"
import type { RemoteServer } from "../../../src/mcp/client/config.ts"
import { listenForCallback } from "../../../src/mcp/client/oauth/callback.ts"
import { signIn, signOut } from "../../../src/mcp/client/oauth/sign-in.ts"
import { openTokenBook, type TokenBook } from "../../../src/mcp/client/oauth/token-book.ts"
import { type Engine, startEngine } from "../../session/engine.ts"
import { type SignInServer, startSignInServer } from "./authorization-server.ts"

let closed: SignInServer
let engine: Engine
let settings: RemoteServer
let book: TokenBook
const never = new AbortController().signal

beforeEach(async () => {
  closed = await startSignInServer()
  settings = { type: "remote", url: closed.url }
  engine = await startEngine([], {
    mcp: { closed: settings },
    permission: { "*": "allow" },
    onProblem: () => {},
  })
  book = openTokenBook(engine.project.path(".data/mcp-auth.json"))
})
afterEach(async () => {
  await engine[Symbol.asyncDispose]()
  await closed[Symbol.asyncDispose]()
})

/** As a browser does whose person says yes. */
function enter(): Promise<void> {
  return signIn({ server: settings, book, open: (url) => void fetch(url), signal: never })
}

const status = async () => (await engine.tackle.mcpServers())[0]
const greet = async () => (await engine.tackle.callTool({ tool: "closed_greet", input: "{}" })).state

test("a server that wants a person to sign in says how, and is there once they did", async () => {
  expect(await status()).toMatchObject({
    status: "failed",
    problem: expect.stringContaining("Sign in to it: tackle mcp auth closed"),
  })
  expect(closed.asked).not.toContain("POST /register")
  await enter()
  expect(await status()).toMatchObject({ status: "connected", tools: [{ name: "greet" }] })
  expect(await greet()).toMatchObject({ status: "completed", output: "hello" })
  const file = engine.project.path(".data/mcp-auth.json")
  expect(statSync(file).mode & 0o777).toBe(0o600)
})

test("the person may take as many attempts as they like", async () => {
  for (let attempt = 0; attempt < 6; attempt += 1) expect(await status()).toMatchObject({ status: "failed" })
  await enter()
  expect(await status()).toMatchObject({ status: "connected" })
})

test("a token that ran out is renewed without the person", async () => {
  await enter()
  await status()
  const first = book.get(closed.url).tokens
  closed.expire()
  expect(await greet()).toMatchObject({ status: "completed" })
  const second = book.get(closed.url).tokens
  expect(second?.refresh_token).not.toBe(first?.refresh_token)
  closed.expire()
  expect(await greet()).toMatchObject({ status: "completed" })
  expect(closed.asked.filter((line) => line === "POST /token refresh_token")).toHaveLength(2)
})

test("a token is hidden from the moment it is known, as is the one that it is renewed by", async () => {
  await enter()
  await status()
  closed.expire()
  await greet()
  const { access_token: access = "", refresh_token: refresh = "" } = book.get(closed.url).tokens ?? {}
  expect(access.length + refresh.length).toBeGreaterThan(16)
  const input = JSON.stringify({ command: `echo ${access} ${refresh}`, description: "Say them" })
  const said = (await engine.tackle.callTool({ tool: "bash", input })).state
  expect(said).toMatchObject({
    status: "completed",
    output: expect.stringContaining(`[secret ${closed.url} access key] [secret ${closed.url} refresh key]`),
  })
})

test("where that is refused the person is asked to sign in", async () => {
  await enter()
  await status()
  closed.expire()
  closed.revoke()
  expect(await greet()).toMatchObject({
    status: "error",
    error: expect.stringContaining("tackle mcp auth closed"),
  })
  await enter()
  expect(await greet()).toMatchObject({ status: "completed" })
})

test("a call that needs more rights says so, and signing in again asks for them beside the others", async () => {
  settings.oauth = { scope: "read" }
  await enter()
  delete settings.oauth
  await status()
  closed.demand("write")
  expect(await greet()).toMatchObject({
    status: "error",
    error: expect.stringMatching(/wants more rights than you gave it \(write\).*tackle mcp auth closed/s),
  })
  await enter()
  expect(closed.scopes).toEqual(["read", "read write"])
  expect(await greet()).toMatchObject({ status: "completed" })
})

test("signing out forgets it; tokens hold for no other address", async () => {
  await enter()
  expect(book.get(`${closed.url}/other`)).toEqual({})
  expect(signOut(settings, book)).toBe(true)
  expect(signOut(settings, book)).toBe(false)
  expect(await status()).toMatchObject({ status: "failed" })
})

test("tokens are hidden in what an engine says", async () => {
  await enter()
  const token = book.get(closed.url).tokens?.access_token ?? ""
  await using other = await startEngine([], {
    mcp: {},
    dataDirectory: engine.tackle.dataDirectory,
    permission: { "*": "allow" },
  })
  const { state } = await other.tackle.callTool({
    tool: "bash",
    input: JSON.stringify({ command: `echo ${token}` }),
  })
  expect(JSON.stringify(state)).not.toContain(token)
  expect(state.status).toBe("completed")
})

test("no oauth, and a key in the configuration, leave it alone", async () => {
  for (const more of [{ oauth: false as const }, { headers: { authorization: "Bearer none" } }]) {
    await using other = await startEngine([], {
      mcp: { closed: { ...settings, ...more } },
      onProblem: () => {},
    })
    const [server] = await other.tackle.mcpServers()
    expect(server?.problem).toMatch(/it answered 401/)
  }
  expect(closed.asked.filter((line) => line.includes("well-known"))).toEqual([])
  settings.oauth = false
  await expect(enter()).rejects.toThrow(/switched off/)
})

describe("the way back", () => {
  test("is taken only with our state", async () => {
    await using callback = await listenForCallback({ port: 0, state: "ours" })
    const answer = callback.answer(never)
    expect((await fetch(`${callback.url}?code=x&state=theirs`)).status).toBe(404)
    expect((await fetch(`${callback.url}?code=x`)).status).toBe(404)
    expect((await fetch(`${callback.url}?code=mine&state=ours`)).status).toBe(200)
    expect((await answer).get("code")).toBe("mine")
  })

  test("is not ended by a request that names no place", async () => {
    await using callback = await listenForCallback({ port: 0, state: "ours" })
    const { port } = new URL(callback.url)
    const socket = connect(Number(port), "127.0.0.1")
    socket.end("GET // HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    expect(await text(socket)).toMatch(/^HTTP\/1\.1 404 /)
  })

  test("tells a refusal", async () => {
    await using callback = await listenForCallback({ port: 0, state: "ours" })
    const answer = callback.answer(never)
    answer.catch(() => {})
    await fetch(`${callback.url}?error=access_denied&state=ours`)
    await expect(answer).rejects.toThrow(/did not sign you in \(access_denied\)/)
  })

  test("is given up at the signal, and nobody listens any more", async () => {
    const stop = new AbortController()
    let back = ""
    const open = (url: URL) => {
      back = url.searchParams.get("redirect_uri") ?? ""
      stop.abort()
    }
    await expect(signIn({ server: settings, book, open, signal: stop.signal })).rejects.toThrow(/abort/)
    await expect(fetch(back)).rejects.toThrow()
  })
})
