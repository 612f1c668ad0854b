import { expect, test } from "vitest"
import { temporaryProject } from "../../src/testing/project.ts"
import { setUp } from "./start-server.ts"

async function startWithPage() {
  const page = await temporaryProject({
    "index.html": "<!doctype html><title>Tackle</title>",
    "app-0123456789.js": "export {}",
    "secret.txt": "secret",
  })
  const setup = await setUp([], { pageDirectory: page.directory })
  const open = (path: string) => fetch(`${setup.server.url}${path}`)
  return { ...setup, open }
}

test("serves the page without a token and with a strict policy", async () => {
  const { open } = await startWithPage()
  const page = await open("/")
  expect([page.status, page.headers.get("content-type")]).toEqual([200, "text/html; charset=utf-8"])
  expect(page.headers.get("content-security-policy")).toBe(
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  )
  expect(page.headers.get("cache-control")).toBe("no-store")
  expect(page.headers.get("x-content-type-options")).toBe("nosniff")
  expect(page.headers.get("referrer-policy")).toBe("no-referrer")
  const script = await open("/assets/app-0123456789.js")
  expect(script.headers.get("content-type")).toBe("text/javascript; charset=utf-8")
  expect(script.headers.get("cache-control")).toBe("public, max-age=31536000, immutable")
})

test("serves no other files", async () => {
  const { open } = await startWithPage()
  for (const path of [
    "/assets/secret.txt",
    "/assets/missing.js",
    "/assets/..%2fapp-0123456789.js",
    "/assets/%2e%2e/index.html",
    "/assets/",
    "/assets/a/b.js",
  ])
    expect([path, (await open(path)).status].join(" ")).toMatch(/ 40[14]$/)
  expect((await open("/session")).status).toBe(401)
})

test("says that the page is not built", async () => {
  const { server } = await setUp()
  const response = await fetch(server.url)
  expect(response.status).toBe(404)
  expect(await response.text()).toContain("npm run build")
})

test("creates an address that logs in once", async () => {
  const { server, post } = await startWithPage()
  const ticket = new URL(server.pageAddress()).hash.slice("#ticket=".length)
  expect((await post("/login", { ticket })).status).toBe(204)
  expect((await post("/login", { ticket })).status).toBe(401)
})
