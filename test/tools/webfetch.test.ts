import { createServer, type RequestListener } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { afterEach, beforeEach, describe, expect, test } from "vitest"
import { type FakeContext, fakeContext } from "../../src/testing/context.ts"
import type { AskRequest } from "../../src/tool/context.ts"
import { createWebfetchTool } from "../../src/tools/web/webfetch.ts"
import { harness, policyOf, scopeOf } from "../permission/support.ts"

let ctx: FakeContext
const cleanups: (() => unknown)[] = []

beforeEach(() => {
  ctx = fakeContext({ directory: tmpdir() })
})

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

/** A server on loopback that records requests. */
async function serve(listener: RequestListener): Promise<{ url: string; port: number; paths: string[] }> {
  const paths: string[] = []
  const server = createServer((request, response) => {
    paths.push(request.url ?? "")
    listener(request, response)
  })
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening))
  cleanups.push(() => {
    server.closeAllConnections()
    return new Promise((closed) => server.close(closed))
  })
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}`, port, paths }
}

const page = (body: string | Buffer, type = "text/html") =>
  serve((_, response) => response.writeHead(200, { "content-type": type }).end(body))

const redirect = (location: string | (() => string)) =>
  serve((_, response) =>
    response.writeHead(302, { location: typeof location === "string" ? location : location() }).end(),
  )

async function fetchPage(
  url: string,
  options: { format?: "markdown" | "text" | "html"; timeout?: number; context?: FakeContext } = {},
) {
  const tool = await createWebfetchTool().init()
  const { format = "markdown", timeout = 30, context = ctx } = options
  return tool.execute({ url, format, timeout }, context)
}

const refusing = (refuses: (request: AskRequest) => boolean) =>
  fakeContext({
    directory: tmpdir(),
    onAsk: (request) => {
      if (refuses(request)) throw new Error(`refused ${request.permission}`)
    },
  })

describe("a page is returned", () => {
  const html = "<h1>Title</h1><p>A <a href='/x'>link</a></p>"
  test.each([
    ["markdown" as const, (url: string) => `# Title\n\nA [link](${url}/x)`],
    ["text" as const, () => "Title\n\nA link"],
    ["html" as const, () => html],
  ])("as %s", async (format, expected) => {
    const { url } = await page(html, "text/html; charset=utf-8")
    const result = await fetchPage(url, { format })
    expect(result).toMatchObject({
      title: `${url}/ (text/html)`,
      output: expected(url),
      metadata: { url: `${url}/`, contentType: "text/html; charset=utf-8", format, cached: false },
    })
  })

  test("unchanged if it is not HTML", async () => {
    const { url } = await page('{"a": "<b>"}', "application/json")
    expect((await fetchPage(url)).output).toBe('{"a": "<b>"}')
  })

  test("as an attachment if it is an image or a PDF, whatever its content type", async () => {
    const png = Buffer.from("\x89PNG\r\n\x1a\n\0\0", "latin1")
    const { url } = await page(png, "application/octet-stream")
    const result = await fetchPage(`${url}/a/pic.png`)
    expect(result.attachments).toEqual([
      {
        type: "file",
        mime: "image/png",
        url: `data:image/png;base64,${png.toString("base64")}`,
        filename: "pic.png",
      },
    ])
  })

  test("in the server's encoding", async () => {
    const { url } = await page(Buffer.from("gr\xfcn", "latin1"), "text/plain; charset=iso-8859-1")
    expect((await fetchPage(url)).output).toBe("grün")
  })
})

test("asks for the URL and separately for a non-public host; always covers the origin", async () => {
  const { url } = await page("x", "text/plain")
  await fetchPage(`${url}/a?b=1#part`)
  expect(ctx.asked).toEqual([
    {
      permission: "webfetch",
      patterns: [`${url}/a?b=1`],
      always: [`${url}/*`],
      metadata: { url: `${url}/a?b=1`, format: "markdown", timeout: 30 },
    },
    {
      permission: "private_network",
      patterns: ["127.0.0.1"],
      always: ["127.0.0.1"],
      metadata: { url: `${url}/a?b=1`, addresses: ["127.0.0.1"] },
    },
  ])
})

test.each([
  ["http://LOCALHOST:PORT/%61dmin", "http://localhost:PORT/admin"],
  ["http://localhost.:PORT/%61%44%6din/%7Ex", "http://localhost:PORT/aDmin/~x"],
  ["http://localhost:PORT/a/%2e%2e/admin", "http://localhost:PORT/admin"],
  ["http://localhost:PORT\\\\admin", "http://localhost:PORT//admin"],
  ["http://loc\tal\nhost:PORT/ad\tmin", "http://localhost:PORT/admin"],
  ["http://localhost:PORT/%2Fadmin%20x%25?%61#f", "http://localhost:PORT/%2Fadmin%20x%25?%61"],
])("%s is asked for as %s", async (url, asked) => {
  const { port } = await page("x", "text/plain")
  const at = (text: string) => text.replace("PORT", String(port))
  await fetchPage(at(url))
  expect(ctx.asked.map(({ permission, patterns }) => [permission, ...patterns])).toEqual([
    ["webfetch", at(asked)],
    ["private_network", "localhost"],
  ])
})

describe("nothing is sent", () => {
  test.each(["webfetch", "private_network"])("if %s is refused", async (permission) => {
    const { url, paths } = await page("x")
    const context = refusing((request) => request.permission === permission)
    await expect(fetchPage(url, { context })).rejects.toThrow(`refused ${permission}`)
    expect(paths).toEqual([])
  })

  test.each([
    "http://localhost:PORT/",
    "http://127.1:PORT/",
    "http://2130706433:PORT/",
    "http://0x7f000001:PORT/",
    "http://[::ffff:127.0.0.1]:PORT/",
    "http://0:PORT/",
    "http://0177.0.0.1:PORT/",
    "http://0x7f.1:PORT/",
    "http://127.0.0.1.:PORT/",
    "http://localhost.:PORT/",
    "http://%6c%6fcalhost:PORT/",
    "http://１２７.0.0.1:PORT/",
    "http://[::ffff:7f00:1]:PORT/",
    "http://[0:0:0:0:0:ffff:127.0.0.1]:PORT/",
    "http://[::127.0.0.1]:PORT/",
    "http://[64:ff9b::7f00:1]:PORT/",
  ])("to this machine under the name %s", async (address) => {
    const { port, paths } = await page("x")
    const context = refusing(({ permission }) => permission === "private_network")
    await expect(fetchPage(address.replace("PORT", String(port)), { context })).rejects.toThrow(
      "refused private_network",
    )
    expect(paths).toEqual([])
  })

  test.each([
    ["file:///etc/passwd", /Use http/],
    ["ftp://example.com/", /Use http/],
    ["example.com/x", /Invalid URL/],
    ["http://user:secret@127.0.0.1/", /user name or password/],
    ["javascript:alert(1)", /Use http/],
  ])("for %s", async (url, message) => {
    await expect(fetchPage(url)).rejects.toMatchObject({
      code: "webfetch.url",
      message: expect.stringMatching(message),
    })
    expect(ctx.asked).toEqual([])
  })
})

test("proxies of the environment are not used", async () => {
  const [target, proxy] = [await page("direct", "text/plain"), await page("proxied", "text/plain")]
  const names = ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "NODE_USE_ENV_PROXY"]
  const before = names.map((name) => process.env[name])
  cleanups.push(() =>
    names.forEach((name, index) => {
      if (before[index] === undefined) delete process.env[name]
      else process.env[name] = before[index]
    }),
  )
  for (const name of names) process.env[name] = name === "NODE_USE_ENV_PROXY" ? "1" : proxy.url
  expect((await fetchPage(target.url)).output).toBe("direct")
  expect(proxy.paths).toEqual([])
})

describe("a redirect", () => {
  test("on the same host asks again, and the output names the target", async () => {
    const { url, paths } = await serve((request, response) => {
      if (request.url === "/a") response.writeHead(301, { location: "b" }).end()
      else response.writeHead(200, { "content-type": "text/plain" }).end("there")
    })
    const result = await fetchPage(`${url}/a`)
    expect(result.output).toBe(`[${url}/a redirected to ${url}/b]\n\nthere`)
    expect(result.metadata?.url).toBe(`${url}/b`)
    expect(paths).toEqual(["/a", "/b"])
    expect(ctx.asked.map(({ permission, patterns }) => [permission, ...patterns])).toEqual([
      ["webfetch", `${url}/a`],
      ["private_network", "127.0.0.1"],
      ["webfetch", `${url}/b`],
      ["private_network", "127.0.0.1"],
    ])
  })

  test("to an earlier URL does not ask again", async () => {
    let visits = 0
    const { url, paths } = await serve((request, response) => {
      if (request.url === "/login") response.writeHead(302, { location: "/" }).end()
      else if (visits++ === 0) response.writeHead(302, { location: "/login" }).end()
      else response.writeHead(200, { "content-type": "text/plain" }).end("in")
    })
    expect((await fetchPage(url)).output).toBe("in")
    expect(paths).toEqual(["/", "/login", "/"])
    const pages = ctx.asked.filter(({ permission }) => permission === "webfetch")
    expect(pages.flatMap(({ patterns }) => patterns)).toEqual([`${url}/`, `${url}/login`])
  })

  const allowed = "allow" as const
  test.each([
    ["a deny of its path", { "/*": allowed, "/secret/*": "deny" as const }, "deny"],
    ["an allow of another path", { "/open": allowed }, "ask"],
    ["an allow of the host", { "/*": allowed }, "there"],
  ])("on one host is judged by the rules, with %s", async (_, rules, outcome) => {
    const { url, paths } = await serve((request, response) => {
      if (request.url === "/open") response.writeHead(302, { location: "/%73ecret/page" }).end()
      else response.writeHead(200, { "content-type": "text/plain" }).end("there")
    })
    const webfetch = Object.fromEntries(Object.entries(rules).map(([path, action]) => [url + path, action]))
    const { permission: engine } = harness()
    const scope = scopeOf(policyOf({ private_network: { "127.0.0.1": "allow" }, webfetch }))
    const context = fakeContext({
      directory: tmpdir(),
      onAsk: async ({ permission, patterns }) => {
        const { action } = await engine.check({ permission, patterns }, scope)
        if (action !== "allow") throw new Error(action)
      },
    })
    const fetched = fetchPage(`${url}/open`, { context })
    if (outcome === "there") expect((await fetched).output).toMatch(/there$/)
    else await expect(fetched).rejects.toThrow(outcome)
    expect(paths).toEqual(outcome === "there" ? ["/open", "/secret/page"] : ["/open"])
  })

  test("to another host asks for its URL, and for the host if it is not public", async () => {
    const target = await page("x", "text/plain")
    const { url } = await redirect(`http://localhost:${target.port}/deep`)
    await fetchPage(url)
    expect(ctx.asked.map(({ permission, patterns }) => [permission, ...patterns])).toEqual([
      ["webfetch", `${url}/`],
      ["private_network", "127.0.0.1"],
      ["webfetch", `http://localhost:${target.port}/deep`],
      ["private_network", "localhost"],
    ])
  })

  test("is not followed if refused", async () => {
    const target = await page("secret")
    const { url } = await redirect(`http://localhost:${target.port}/`)
    for (const refused of ["webfetch", "private_network"]) {
      const context = refusing(
        ({ permission, patterns }) => permission === refused && String(patterns).includes("localhost"),
      )
      await expect(fetchPage(url, { context })).rejects.toThrow("refused")
    }
    expect(target.paths).toEqual([])
  })

  test.each([
    ["file:///etc/passwd", "webfetch.url"],
    ["http://u:p@127.0.0.1/", "webfetch.url"],
    ["http://[broken", "webfetch.url"],
  ])("to %s is refused", async (location, code) => {
    const { url } = await redirect(location)
    await expect(fetchPage(url)).rejects.toMatchObject({
      code,
      message: expect.stringMatching(/Continue without the page\.$/),
    })
  })

  test("loop ends", async () => {
    let count = 0
    const { url, paths } = await redirect(() => `/${count++}`)
    await expect(fetchPage(url)).rejects.toMatchObject({ code: "webfetch.redirect" })
    expect(paths.length).toBe(11)
  })
})

describe("is an error that says what to do:", () => {
  test.each([404, 403, 429, 500])("HTTP %s", async (status) => {
    const { url } = await serve((_, response) => response.writeHead(status).end("no"))
    await expect(fetchPage(url)).rejects.toMatchObject({
      code: "webfetch.status",
      message: expect.stringContaining(`HTTP ${status}`),
    })
  })

  test("a body of more than 5 MB", async () => {
    const { url } = await page("x".repeat(5 * 1024 * 1024 + 1), "text/plain")
    await expect(fetchPage(url)).rejects.toMatchObject({ code: "webfetch.size" })
  })

  test("a binary file", async () => {
    const { url } = await page(Buffer.of(0x50, 0x4b, 3, 4, 0, 0), "application/zip")
    await expect(fetchPage(url)).rejects.toMatchObject({ code: "webfetch.content" })
  })

  test("a host that does not exist", async () => {
    await expect(fetchPage("http://no-such-host.invalid/")).rejects.toMatchObject({
      code: "webfetch.network",
    })
  })

  test("a page that does not finish in time", async () => {
    const { url } = await serve((_, response) => void response.writeHead(200).write("x"))
    await expect(fetchPage(url, { timeout: 0.1 })).rejects.toMatchObject({ code: "timeout" })
  })
})

test("the time waiting for the user does not count", async () => {
  const { url } = await page("x", "text/plain")
  const context = fakeContext({
    directory: tmpdir(),
    onAsk: () => new Promise((resolve) => setTimeout(resolve, 700)),
  })
  expect((await fetchPage(url, { context, timeout: 1 })).output).toBe("x")
})

test("stops at an abort", async () => {
  const aborting = new AbortController()
  const { url } = await serve(() => aborting.abort())
  const context = fakeContext({ directory: tmpdir(), abort: aborting.signal })
  await expect(fetchPage(url, { context })).rejects.toMatchObject({ code: "aborted" })
})

test("a cached page asks for the same permissions and is not fetched", async () => {
  const asked = ["http://one.invalid/", "https://two.invalid/"].map((url) => new URL(url))
  const kept = { url: new URL("https://two.invalid/x"), contentType: "text/plain", body: Buffer.from("kept") }
  const keys: string[] = []
  const get = (key: string) => {
    keys.push(key)
    return { ...kept, asked, cacheable: true }
  }
  const tool = await createWebfetchTool({ get, set: () => {} }).init()
  const result = await tool.execute({ url: "http://one.invalid", format: "markdown", timeout: 30 }, ctx)
  expect(result).toMatchObject({ output: expect.stringMatching(/kept$/), metadata: { cached: true } })
  expect(ctx.asked.flatMap(({ patterns }) => patterns)).toEqual(asked.map(String))

  const other = fakeContext({ directory: tmpdir(), sessionID: "ses_other" })
  await tool.execute({ url: "http://one.invalid", format: "markdown", timeout: 30 }, other)
  await tool.execute({ url: "http://one.invalid", format: "html", timeout: 30 }, ctx)
  expect(new Set(keys).size).toBe(3)
})

test("pages of this machine or network are not cached", async () => {
  const { url, paths } = await page("x", "text/plain")
  const tool = await createWebfetchTool().init()
  const args = { url, format: "markdown" as const, timeout: 30 }
  for (const _ of [1, 2]) await tool.execute(args, ctx)
  expect(paths).toEqual(["/", "/"])
})
