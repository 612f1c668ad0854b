import { expect, test } from "vitest"
import { cookieSeconds, createLogins, ticketSeconds } from "../../src/server/logins.ts"
import type { Token } from "../../src/server/tokens.ts"
import { setUp } from "./start-server.ts"

async function loggedIn(scope: "read" | "run" = "run") {
  const setup = await setUp()
  const { body } = await setup.post("/ticket", {}, { scope })
  const login = await setup.post("/login", body, { headers: { authorization: "" } })
  const cookie = login.headers.get("set-cookie") ?? ""
  const { origin } = new URL(setup.server.url)
  /** Sends a request like a page in a browser. */
  const page = (method: string, path: string, headers: Record<string, string> = {}, content?: unknown) =>
    fetch(`${setup.server.url}${path}`, {
      method,
      headers: { cookie: cookie.split(";")[0] ?? "", "content-type": "application/json", ...headers },
      body: content === undefined ? undefined : JSON.stringify(content),
    })
  return { ...setup, ticket: body.ticket as string, login, cookie, origin, page }
}

test("exchanges a ticket once for a cookie that scripts and other sites cannot use", async () => {
  const { post, login, ticket, cookie, page, server } = await loggedIn()
  expect(login.status).toBe(204)
  expect(cookie).toMatch(
    new RegExp(`^tackle-${new URL(server.url).port}=\\S+; Path=/; Max-Age=\\d+; HttpOnly; SameSite=Strict$`),
  )
  expect((await page("GET", "/session")).status).toBe(200)
  const again = await post("/login", { ticket })
  expect([again.status, again.body.error.code]).toEqual([401, "ticket.invalid"])
  expect(again.headers.get("set-cookie")).toBeNull()
  const out = await page("POST", "/logout")
  expect(out.headers.get("set-cookie")).toContain("Max-Age=0")
})

test("marks the cookie as secure if the page came over HTTPS through a proxy whose origin is allowed", async () => {
  const origin = "https://tackle.example.com"
  const { post } = await setUp([], { origins: [origin] })
  const logIn = async (headers: Record<string, string>) => {
    const { body } = await post("/ticket")
    return (await post("/login", body, { headers })).headers.get("set-cookie")
  }
  expect(await logIn({ origin })).toMatch(/; SameSite=Strict; Secure$/)
  expect(await logIn({})).not.toContain("Secure")
  const out = await post("/logout", {}, { headers: { origin } })
  expect(out.headers.get("set-cookie")).toMatch(/Max-Age=0; .*; Secure$/)
  const refused = await post("/login", {}, { headers: { origin: "https://other.example.com" } })
  expect([refused.status, refused.headers.get("set-cookie")]).toEqual([403, null])
})

test("gives a login the scope of the token that created the ticket", async () => {
  const { page, origin, directory } = await loggedIn("read")
  expect((await page("GET", "/session")).status).toBe(200)
  expect((await page("POST", "/session", { origin }, { directory })).status).toBe(403)
})

test("ignores a cookie in requests of other pages on the same host", async () => {
  const { page, origin, directory } = await loggedIn()
  expect((await page("POST", "/session", { origin }, { directory })).status).toBe(201)
  expect((await page("POST", "/session", { "sec-fetch-site": "same-origin" }, { directory })).status).toBe(
    201,
  )
  for (const headers of [
    {},
    { "sec-fetch-site": "same-site" },
    { "sec-fetch-site": "cross-site" },
    { "sec-fetch-site": "none" },
    { origin: "http://127.0.0.1:1" },
    { origin: "http://localhost:1", "sec-fetch-site": "same-site" },
    { origin: "null" },
  ] as Record<string, string>[])
    expect((await page("POST", "/session", headers, { directory })).status, JSON.stringify(headers)).toBe(403)
  for (const site of ["same-site", "cross-site", "none"])
    expect((await page("GET", "/session", { "sec-fetch-site": site })).status, site).toBe(403)
})

test("refuses forged, changed and foreign cookies", async () => {
  const { page, cookie, server } = await loggedIn()
  const value = cookie.split(";")[0] ?? ""
  const [name = "", content = ""] = value.split("=")
  const [end = "", nonce = "", signature = ""] = content.split(".")
  for (const forged of [
    `${name}=`,
    `${name}=${Number(end) + 1}.${nonce}.${signature}`,
    `${name}=${end}.${nonce}.`,
    `${name}=${end}.${nonce}.${signature.slice(1)}`,
    `${name}x=${content}`,
    `other=${content}`,
  ])
    expect((await page("GET", "/session", { cookie: forged })).status, forged).toBe(401)
  expect((await page("GET", "/session", { cookie: `a=b; ${value}; c=d` })).status).toBe(200)
  const other = await setUp([], { tokens: [{ scope: "admin", token: "x".repeat(40) }] })
  const foreign = `tackle-${new URL(other.server.url).port}=${content}`
  expect((await fetch(`${other.server.url}/session`, { headers: { cookie: foreign } })).status).toBe(401)
  expect(server.url).not.toBe(other.server.url)
})

test("ends tickets and cookies after their time", () => {
  let time = 1_000_000
  const token: Token = { scope: "run", digest: Buffer.alloc(32, 1), open: 0 }
  const logins = createLogins([token], () => time)
  const late = logins.ticketFor(token)
  time += ticketSeconds * 1000
  expect(logins.exchange(late)).toBeUndefined()
  const cookie = logins.exchange(logins.ticketFor(token)) ?? ""
  expect(logins.find(cookie)).toBe(token)
  expect(createLogins([token], () => time).find(cookie)).toBe(token)
  time += cookieSeconds * 1000
  expect(logins.find(cookie)).toBeUndefined()
})
