import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { text } from "node:stream/consumers"
import { afterEach, beforeEach, describe, expect, test } from "vitest"
import { type FakeContext, fakeContext } from "../../src/testing/context.ts"
import { chooseSearch, type SearchConfig } from "../../src/tools/web/choose-search.ts"
import { createCodesearchTool, createWebsearchTool } from "../../src/tools/web/websearch.ts"

interface Received {
  method: string
  path: string
  query: Record<string, string>
  headers: IncomingHttpHeaders
  body: unknown
}

let ctx: FakeContext
let url: string
let received: Received[]
let answer: (response: ServerResponse) => void
const cleanups: (() => unknown)[] = []

beforeEach(async () => {
  ctx = fakeContext({ directory: tmpdir() })
  received = []
  const server = createServer(async (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? "", "http://h")
    const body = await text(request)
    received.push({
      method: request.method ?? "",
      path: pathname,
      query: Object.fromEntries(searchParams),
      headers: request.headers,
      body: body === "" ? undefined : JSON.parse(body),
    })
    answer(response)
  })
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening))
  cleanups.push(() => {
    server.closeAllConnections()
    return new Promise((closed) => server.close(closed))
  })
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

const answerJson = (value: unknown) => {
  answer = (response) => response.setHeader("content-type", "application/json").end(JSON.stringify(value))
}

function search(config: Partial<SearchConfig> & Pick<SearchConfig, "backend">) {
  return chooseSearch({}, { url, key: "the-key", ...config }).backend
}

async function websearch(backend = search({ backend: "exa" }), numResults = 2) {
  return (await createWebsearchTool(backend).init()).execute({ query: "what is it", numResults }, ctx)
}

async function codesearch(backend = search({ backend: "exa" })) {
  return (await createCodesearchTool(backend).init()).execute({ query: "what is it", tokensNum: 2000 }, ctx)
}

const rendered = "1. One (2024)\nhttps://one.example/\nfirst\n\n2. Two\nhttps://two.example/\nsecond"

describe("websearch supports", () => {
  test("Exa", async () => {
    answerJson({
      results: [
        { title: "One", url: "https://one.example/", text: " first\n", publishedDate: "2024", score: 1 },
        { title: "Two", url: "https://two.example/", text: "second", publishedDate: null },
      ],
    })
    expect(await websearch()).toMatchObject({
      title: "what is it",
      output: rendered,
      metadata: { query: "what is it", backend: "exa", results: 2, truncated: false },
    })
    expect(received).toMatchObject([
      {
        method: "POST",
        path: "/search",
        headers: { "x-api-key": "the-key" },
        body: { query: "what is it", numResults: 2, contents: { text: { maxCharacters: 12_000 } } },
      },
    ])
  })

  test("Brave", async () => {
    answerJson({
      web: {
        results: [
          {
            title: "One",
            url: "https://one.example/",
            description: "<strong>first</strong>",
            page_age: "2024",
          },
          { title: "Two", url: "https://two.example/", description: "sec", extra_snippets: ["ond"] },
        ],
      },
    })
    const { output } = await websearch(search({ backend: "brave" }))
    expect(output).toBe(rendered.replace("second", "sec\nond"))
    expect(received).toMatchObject([
      {
        method: "GET",
        path: "/web/search",
        query: { q: "what is it", count: "2" },
        headers: { "x-subscription-token": "the-key" },
      },
    ])
    answerJson({ query: {} })
    expect((await websearch(search({ backend: "brave" }))).output).toMatch(/No results/)
  })

  test("Tavily", async () => {
    answerJson({
      results: [
        { title: "One", url: "https://one.example/", content: "first", published_date: "2024", score: 1 },
        { title: "Two", url: "https://two.example/", content: "second" },
      ],
    })
    expect((await websearch(search({ backend: "tavily" }))).output).toBe(rendered)
    expect(received).toMatchObject([
      {
        method: "POST",
        path: "/search",
        headers: { authorization: "Bearer the-key" },
        body: { query: "what is it", max_results: 2 },
      },
    ])
  })

  test("SearXNG, which has no limit of results", async () => {
    answerJson({
      results: [
        { title: "One", url: "https://one.example/", content: "first", publishedDate: "2024" },
        { title: "Two", url: "https://two.example/", content: "second", publishedDate: null },
        { title: "Three", url: "https://three.example/" },
      ],
    })
    expect((await websearch(search({ backend: "searxng", url: `${url}/` }))).output).toBe(rendered)
    expect(received).toMatchObject([
      { method: "GET", path: "/search", query: { q: "what is it", format: "json" } },
    ])
    await codesearch(search({ backend: "searxng" }))
    expect(received[1]?.query.categories).toBe("it")
  })

  test.each([
    ["plain", "application/json", (message: string) => message],
    ["an event stream", "text/event-stream", (message: string) => `event: message\ndata: ${message}\n\n`],
  ])("Exa without a key, answering as %s", async (_, type, wrap) => {
    const message = { jsonrpc: "2.0", id: 1, result: { content: [{ type: "text", text: "found" }] } }
    answer = (response) => response.setHeader("content-type", type).end(wrap(JSON.stringify(message)))
    const { backend } = chooseSearch({}, { backend: "exa", url })
    expect((await websearch(backend)).output).toBe("found")
    expect((await codesearch(backend)).output).toBe("found")
    expect(received.map(({ body }) => body)).toMatchObject([
      {
        method: "tools/call",
        params: { name: "web_search_exa", arguments: { query: "what is it", numResults: 2 } },
      },
      { params: { name: "get_code_context_exa", arguments: { query: "what is it", tokensNum: 2000 } } },
    ])
    expect(received[0]?.headers.accept).toBe("application/json, text/event-stream")
  })
})

test("codesearch asks Exa for its compiled text", async () => {
  answerJson({ response: "```ts\nrun()\n```", resultsCount: 3 })
  expect((await codesearch()).output).toBe("```ts\nrun()\n```")
  expect(received).toMatchObject([{ path: "/context", body: { query: "what is it", tokensNum: 2000 } }])
})

test("each tool asks under its own name, with the query, before it sends anything", async () => {
  answerJson({ results: [], response: "" })
  await websearch()
  await codesearch()
  expect(ctx.asked).toEqual(
    ["websearch", "codesearch"].map((permission) => ({
      permission,
      patterns: ["what is it"],
      always: ["*"],
      metadata: { query: "what is it", backend: "exa" },
    })),
  )
  ctx = fakeContext({
    directory: tmpdir(),
    onAsk: () => {
      throw new Error("refused")
    },
  })
  await expect(websearch()).rejects.toThrow("refused")
  expect(received.length).toBe(2)
})

describe("is an error that says what to do, without the key:", () => {
  test.each([
    [401, /check the key and the service's settings/],
    [429, /too many/],
    [500, /HTTP 500: broken/],
  ])("HTTP %s", async (status, message) => {
    answer = (response) => response.writeHead(status).end("broken")
    const error = await websearch().catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ code: "websearch.failed", message: expect.stringMatching(message) })
    expect(String(error)).not.toContain("the-key")
  })

  test.each([
    ["no JSON", "<html>"],
    ["another form", '{"results": [{"title": 1}]}'],
  ])("%s", async (_, body) => {
    answer = (response) => response.end(body)
    await expect(websearch()).rejects.toMatchObject({
      code: "websearch.failed",
      message: expect.stringContaining("unexpected response"),
    })
  })

  test("a redirect, which could leak the key", async () => {
    answer = (response) => response.writeHead(302, { location: `${url}/other` }).end()
    await expect(websearch()).rejects.toMatchObject({ code: "websearch.failed" })
    expect(received.map(({ path }) => path)).toEqual(["/search"])
  })

  test("a response of more than 5 MB", async () => {
    answer = (response) => response.end("x".repeat(5 * 1024 * 1024 + 1))
    await expect(websearch()).rejects.toThrow(/more than/)
  })

  test("a server that closes the connection", async () => {
    answer = (response) => response.destroy()
    await expect(websearch(search({ backend: "tavily" }))).rejects.toThrow(
      /Cannot reach the tavily search: ./,
    )
  })

  test("an error of the keyless search", async () => {
    const { backend } = chooseSearch({}, { backend: "exa", url })
    answerJson({ jsonrpc: "2.0", id: 1, error: { code: -1, message: "slow down" } })
    await expect(websearch(backend)).rejects.toThrow(/exa search failed: slow down/)
    answerJson({ jsonrpc: "2.0", id: 1, result: { isError: true, content: [{ type: "text", text: "no" }] } })
    await expect(websearch(backend)).rejects.toThrow(/exa search failed: no/)
  })
})

test("an abort ends a search with the signal's reason", async () => {
  const aborting = new AbortController()
  ctx = fakeContext({ directory: tmpdir(), abort: aborting.signal })
  answer = () => aborting.abort()
  await expect(websearch()).rejects.toMatchObject({ code: "aborted" })
})

describe("the service is", () => {
  const keys = { EXA_API_KEY: "e", BRAVE_API_KEY: "b", TAVILY_API_KEY: "t", SEARXNG_URL: "http://s" }
  test.each<[string, Record<string, string>, SearchConfig | undefined, string, boolean]>([
    ["Exa without a key where nothing is configured", {}, undefined, "exa", false],
    ["Exa first", keys, undefined, "exa", true],
    ["the next that has a key", { ...keys, EXA_API_KEY: "" }, undefined, "brave", true],
    ["Tavily by its key", { TAVILY_API_KEY: "t", SEARXNG_URL: "http://s" }, undefined, "tavily", true],
    ["SearXNG by its address", { SEARXNG_URL: "http://s" }, undefined, "searxng", true],
    ["what the config says", keys, { backend: "tavily" }, "tavily", true],
  ])("%s", (_, environment, config, name, configured) => {
    const chosen = chooseSearch(environment, config)
    expect([chosen.backend.name, chosen.configured]).toEqual([name, configured])
  })

  test.each([
    ["brave", "BRAVE_API_KEY"],
    ["searxng", "SEARXNG_URL"],
  ] as const)("%s without its setting: a search reports the missing setting", async (backend, variable) => {
    await expect(websearch(chooseSearch({}, { backend }).backend)).rejects.toThrow(
      `tell the user to set ${variable}.`,
    )
  })
})

test("long texts share the limit, and no more results than requested are shown", async () => {
  const results = [1, 2, 3].map((number) => ({
    title: `T${number}`,
    url: `https://example.com/${number}`,
    content: "x".repeat(50_000),
  }))
  answerJson({ results })
  const { output } = await websearch(search({ backend: "tavily" }))
  expect(output.length).toBeLessThan(24_500)
  expect(output).toMatch(/^1\. T1\nhttps:\/\/example\.com\/1\nx+…\n\n2\. T2/)
  expect(output).not.toContain("T3")
})
