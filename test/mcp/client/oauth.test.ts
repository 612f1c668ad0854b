import { statSync } from "node:fs"
import { connect } from "node:net"
import { text } from "node:stream/consumers"
import { afterEach, beforeEach, describe, expect, test } from "vitest"
import type { RemoteServer } from "../../../src/mcp/client/config.ts"
import { listenForCallback, signIn, signOut } from "../../../src/mcp/client/oauth/sign-in.ts"
import { openTokenStore, type TokenStore } from "../../../src/mcp/client/oauth/token-store.ts"
import { type Engine, startEngine } from "../../session/engine.ts"
import { type SignInServer, startSignInServer } from "./authorization-server.ts"

let closed: SignInServer
let engine: Engine
let settings: RemoteServer
let tokens: TokenStore
const never = new AbortController().signal

beforeEach(async () => {
  closed = await startSignInServer()
  settings = { type: "remote", url: closed.url }
  engine = await startEngine([], {
    mcp: { closed: settings },
    permission: { "*": "allow" },
    onProblem: () => {},
  })
  tokens = openTokenStore(engine.project.path(".data/mcp-auth.json"))
})
afterEach(async () => {
  await engine[Symbol.asyncDispose]()
  await closed[Symbol.asyncDispose]()
})

/** Signs in like a browser whose user agrees. */
function signInByBrowser(): Promise<void> {
  return signIn({ server: settings, tokens, open: (url) => void fetch(url), signal: never })
}

const status = async () => (await engine.tackle.mcpServers())[0]
const callTool = async () => (await engine.tackle.callTool({ tool: "closed_greet", input: "{}" })).state

test("asks the user to sign in, and connects afterwards", async () => {
  expect(await status()).toMatchObject({
    status: "failed",
    problem: expect.stringContaining("To sign in: tackle mcp auth closed"),
  })
  expect(closed.asked).not.toContain("POST /register")
  await signInByBrowser()
  expect(await status()).toMatchObject({ status: "connected", tools: [{ name: "greet" }] })
  expect(await callTool()).toMatchObject({ status: "completed", output: "hello" })
  const file = engine.project.path(".data/mcp-auth.json")
  expect(statSync(file).mode & 0o777).toBe(0o600)
})

test("does not count attempts before signing in as restarts", async () => {
  for (let attempt = 0; attempt < 6; attempt += 1) expect(await status()).toMatchObject({ status: "failed" })
  await signInByBrowser()
  expect(await status()).toMatchObject({ status: "connected" })
})

test("renews an expired token without the user", async () => {
  await signInByBrowser()
  await status()
  const first = tokens.get(closed.url).tokens
  closed.expire()
  expect(await callTool()).toMatchObject({ status: "completed" })
  const second = tokens.get(closed.url).tokens
  expect(second?.refresh_token).not.toBe(first?.refresh_token)
  closed.expire()
  expect(await callTool()).toMatchObject({ status: "completed" })
  expect(closed.asked.filter((line) => line === "POST /token refresh_token")).toHaveLength(2)
})

test("hides new access and refresh tokens in output", async () => {
  await signInByBrowser()
  await status()
  closed.expire()
  await callTool()
  const { access_token: access = "", refresh_token: refresh = "" } = tokens.get(closed.url).tokens ?? {}
  expect(access.length + refresh.length).toBeGreaterThan(16)
  const input = JSON.stringify({ command: `echo ${access} ${refresh}`, description: "Say them" })
  const said = (await engine.tackle.callTool({ tool: "bash", input })).state
  expect(said).toMatchObject({
    status: "completed",
    output: expect.stringContaining(`[secret ${closed.url} access key] [secret ${closed.url} refresh key]`),
  })
})

test("asks the user to sign in if the renewal is refused", async () => {
  await signInByBrowser()
  await status()
  closed.expire()
  closed.revoke()
  expect(await callTool()).toMatchObject({
    status: "error",
    error: expect.stringContaining("tackle mcp auth closed"),
  })
  await signInByBrowser()
  expect(await callTool()).toMatchObject({ status: "completed" })
})

test("says that no token could be obtained if a client that signs in as itself is refused", async () => {
  const oauth = { grant: "client_credentials" as const, clientId: "robot", clientSecret: "wrong" }
  await using other = await startEngine([], {
    mcp: { closed: { ...settings, oauth } },
    onProblem: () => {},
  })
  const [server] = await other.tackle.mcpServers()
  expect(server?.problem).toMatch(/No token could be obtained: .*tackle mcp auth closed/s)
})

test("reports missing scopes, and requests them in addition at the next sign-in", async () => {
  settings.oauth = { scope: "read" }
  await signInByBrowser()
  delete settings.oauth
  await status()
  closed.demand("write")
  expect(await callTool()).toMatchObject({
    status: "error",
    error: expect.stringMatching(/requires more scopes than you granted \(write\).*tackle mcp auth closed/s),
  })
  await signInByBrowser()
  expect(closed.scopes).toEqual(["read", "read write"])
  expect(await callTool()).toMatchObject({ status: "completed" })
})

test("deletes the tokens at sign-out, and keeps them per URL", async () => {
  await signInByBrowser()
  expect(tokens.get(`${closed.url}/other`)).toEqual({})
  expect(signOut(settings, tokens)).toBe(true)
  expect(signOut(settings, tokens)).toBe(false)
  expect(await status()).toMatchObject({ status: "failed" })
})

test("hides stored tokens in the output of an engine", async () => {
  await signInByBrowser()
  const token = tokens.get(closed.url).tokens?.access_token ?? ""
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

test("does not sign in with oauth switched off or an authorization header", async () => {
  for (const more of [{ oauth: false as const }, { headers: { authorization: "Bearer none" } }]) {
    await using other = await startEngine([], {
      mcp: { closed: { ...settings, ...more } },
      onProblem: () => {},
    })
    const [server] = await other.tackle.mcpServers()
    expect(server?.problem).toMatch(/it returned 401/)
  }
  expect(closed.asked.filter((line) => line.includes("well-known"))).toEqual([])
  settings.oauth = false
  await expect(signInByBrowser()).rejects.toThrow(/disabled/)
})

describe("listenForCallback", () => {
  test("accepts only its own state", async () => {
    await using callback = await listenForCallback({ port: 0, state: "ours" })
    const answer = callback.answer(never)
    expect((await fetch(`${callback.url}?code=x&state=theirs`)).status).toBe(404)
    expect((await fetch(`${callback.url}?code=x`)).status).toBe(404)
    expect((await fetch(`${callback.url}?code=mine&state=ours`)).status).toBe(200)
    expect((await answer).get("code")).toBe("mine")
  })

  test("survives a request with an invalid URL", async () => {
    await using callback = await listenForCallback({ port: 0, state: "ours" })
    const { port } = new URL(callback.url)
    const socket = connect(Number(port), "127.0.0.1")
    socket.end("GET // HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    expect(await text(socket)).toMatch(/^HTTP\/1\.1 404 /)
  })

  test("reports a refusal of the server", async () => {
    await using callback = await listenForCallback({ port: 0, state: "ours" })
    const answer = callback.answer(never)
    answer.catch(() => {})
    await fetch(`${callback.url}?error=access_denied&state=ours`)
    await expect(answer).rejects.toThrow(/did not sign you in \(access_denied\)/)
  })

  test("stops listening when the signal fires", async () => {
    const stop = new AbortController()
    let back = ""
    const open = (url: URL) => {
      back = url.searchParams.get("redirect_uri") ?? ""
      stop.abort()
    }
    await expect(signIn({ server: settings, tokens, open, signal: stop.signal })).rejects.toThrow(/abort/)
    await expect(fetch(back)).rejects.toThrow()
  })
})
