import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { setTimeout as sleep } from "node:timers/promises"
import { brotliCompressSync, gzipSync } from "node:zlib"
import { afterEach, describe, expect, test, vi } from "vitest"
import { httpFetch } from "../../src/model/http-fetch.ts"

type Handler = (request: IncomingMessage, response: ServerResponse, body: string) => void

const closing: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closing.splice(0)) await close()
})

/** Starts a server on loopback. Returns its address and a function that returns the number of connections. */
async function serve(handle: Handler) {
  let connections = 0
  const server = createServer(async (request, response) => {
    let body = ""
    for await (const chunk of request.setEncoding("utf8")) body += chunk
    handle(request, response, body)
  })
  server.on("connection", () => {
    connections += 1
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  closing.push(async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  })
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}/v1/chat`, connections: () => connections }
}

function post(body: string, more: RequestInit = {}): RequestInit {
  return { method: "POST", headers: { "content-type": "application/json" }, body, ...more }
}

// Packages rely on the behavior of the global fetch, so both must pass the same tests.
describe.each([
  ["the global fetch", fetch],
  ["httpFetch", httpFetch],
])("%s", (_, ask) => {
  test("sends method, headers and body, and reads status, headers and text", async () => {
    const { url } = await serve((request, response, body) => {
      response.writeHead(201, "Made", { "X-Seen": "yes", "content-type": "text/plain" })
      response.end(`${request.method} ${request.headers["content-type"]} ${body}`)
    })
    const response = await ask(url, post('{"text":"→ ü 🎣"}'))
    expect(response).toMatchObject({ ok: true, status: 201, statusText: "Made", url })
    expect(response.headers.get("x-seen")).toBe("yes")
    expect(Object.fromEntries([...response.headers])).toMatchObject({ "x-seen": "yes" })
    expect(await response.text()).toBe('POST application/json {"text":"→ ü 🎣"}')
  })

  test("reads JSON, also of an error status", async () => {
    const { url } = await serve((_request, response) =>
      response.writeHead(429, { "retry-after": "3" }).end('{"error":{"message":"slow down"}}'),
    )
    const response = await ask(url, post("{}"))
    expect(response).toMatchObject({ ok: false, status: 429 })
    expect(response.headers.get("retry-after")).toBe("3")
    expect(await response.json()).toEqual({ error: { message: "slow down" } })
  })

  test("streams a body", async () => {
    const steps: (() => void)[] = []
    const { url } = await serve((_request, response) => {
      response.write("one")
      steps.push(
        () => response.write("two"),
        () => response.end("three"),
      )
    })
    const response = await ask(url, post("{}"))
    const seen: string[] = []
    const decoder = new TextDecoder()
    for await (const chunk of response.body ?? []) {
      seen.push(decoder.decode(chunk))
      steps.shift()?.()
    }
    expect(seen).toEqual(["one", "two", "three"])
  })

  test.each([
    ["gzip", gzipSync],
    ["br", brotliCompressSync],
  ])("undoes %s", async (encoding, compress) => {
    const { url } = await serve((_request, response) =>
      response.writeHead(200, { "content-encoding": encoding }).end(compress("hello ".repeat(1_000))),
    )
    expect(await (await ask(url, post("{}"))).text()).toBe("hello ".repeat(1_000))
  })

  test("follows a redirect with its body", async () => {
    const { url } = await serve((request, response, body) => {
      if (request.url === "/moved") response.end(body)
      else response.writeHead(307, { location: "/moved" }).end()
    })
    expect(await (await ask(url, post("carried"))).text()).toBe("carried")
  })

  test("rejects with fetch failed for a closed port", async () => {
    const failure = await ask("http://127.0.0.1:9/v1", post("{}")).catch((error: unknown) => error)
    expect(failure).toBeInstanceOf(TypeError)
    expect(failure).toMatchObject({ message: "fetch failed" })
  })

  test("rejects with the reason of a signal, before and during the answer", async () => {
    const { url } = await serve((_request, response) => void response.write("begun"))
    const early = await ask(url, post("{}", { signal: AbortSignal.abort(new Error("early")) })).catch(String)
    expect(early).toBe("Error: early")

    const controller = new AbortController()
    const response = await ask(url, post("{}", { signal: controller.signal }))
    const reader = response.body?.getReader()
    await reader?.read()
    const waiting = reader?.read().then(
      () => "more",
      () => "ended",
    )
    controller.abort(new Error("enough"))
    expect(await waiting).toBe("ended")
  })

  test("rejects with the reason of a signal that fires before the answer begins", async () => {
    const { url } = await serve(() => {})
    const controller = new AbortController()
    const answer = ask(url, post("{}", { signal: controller.signal })).catch(String)
    await sleep(20)
    controller.abort(new Error("enough"))
    expect(await answer).toBe("Error: enough")
  })

  test("fails if the body breaks off", async () => {
    const { url } = await serve((_request, response) => {
      response.write("half")
      setTimeout(() => response.destroy(), 20)
    })
    await expect((await ask(url, post("{}"))).text()).rejects.toThrow()
  })

  test("closes the connection of a cancelled body", async () => {
    const closed = Promise.withResolvers<void>()
    const { url } = await serve((_request, response) => {
      response.write("begun")
      response.once("close", closed.resolve)
    })
    const response = await ask(url, post("{}"))
    await response.body?.cancel()
    await closed.promise
  })

  test("refuses a header that cannot be sent", async () => {
    const { url } = await serve((_request, response) => void response.end())
    await expect(ask(url, post("{}", { headers: { "x-bad": "a\nb" } }))).rejects.toThrow(TypeError)
  })
})

test("joins data that arrives within 33 ms after a chunk, and does not delay the end of the body", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] })
  try {
    const { promise: answer, resolve } = Promise.withResolvers<ServerResponse>()
    const { url } = await serve((_request, response) => {
      response.write("one ")
      resolve(response)
    })
    const server = await answerTo(url, answer)
    expect(await server.read()).toBe("one ")
    await server.write("two ")
    const next = server.read()
    vi.advanceTimersByTime(33)
    expect(await next).toBe("two ")
    await server.write("three ")
    await server.write("four ")
    server.end("five")
    expect(await server.read()).toBe("three four five")
    expect(await server.read()).toBeUndefined()
  } finally {
    vi.useRealTimers()
  }
})

/** The server's side of an answer, and a reader of its chunks, which returns undefined at the end. */
async function answerTo(url: string, answer: Promise<ServerResponse>) {
  const { body } = await httpFetch(url, post("{}"))
  const reader = body?.getReader()
  const response = await answer
  return {
    write: (text: string) => new Promise<unknown>((written) => response.write(text, written)),
    end: (text: string) => void response.end(text),
    async read(): Promise<string | undefined> {
      const chunk = await reader?.read()
      return chunk?.value && new TextDecoder().decode(chunk.value)
    },
  }
}

test("reuses a connection and replaces a stale one", async () => {
  let closeNow: (() => void) | undefined
  const { url, connections } = await serve((request, response) => {
    response.end("ok")
    closeNow = () => request.socket.destroy()
  })
  for (let count = 0; count < 3; count += 1) await (await httpFetch(url, post("{}"))).text()
  expect(connections()).toBe(1)
  // The server closes the connection before the client notices it.
  closeNow?.()
  expect(await (await httpFetch(url, post("{}"))).text()).toBe("ok")
  expect(connections()).toBe(2)
})

test("sends a body in pieces, also after a redirect", async () => {
  const pieces = ['{"text":"→ ü', "", ' 🎣"}'].map((text) => new Uint8Array(Buffer.from(text)))
  const { url } = await serve((request, response, body) => {
    if (request.url !== "/moved") return response.writeHead(307, { location: "/moved" }).end()
    return response.end(`${request.headers["content-length"]} ${body}`)
  })
  for (const target of [url, new URL("/moved", url)]) {
    const response = await httpFetch(target, { ...post(""), body: pieces })
    expect(await response.text()).toBe('22 {"text":"→ ü 🎣"}')
  }
})

test("rejects an unsupported encoding", async () => {
  const { url } = await serve((_request, response) =>
    response.writeHead(200, { "content-encoding": "zip" }).end("PK"),
  )
  const failure = await httpFetch(url, post("{}")).catch((error: unknown) => error)
  expect(failure).toMatchObject({
    message: "fetch failed",
    cause: { message: /unsupported content encoding "zip"/ },
  })
})

test("passes other requests to the global fetch", async () => {
  const { url } = await serve((_request, response, body) => void response.end(body))
  const form = new FormData()
  form.set("field", "value")
  expect(await (await httpFetch(url, { method: "POST", body: form })).text()).toContain("value")
  expect(await (await httpFetch(new Request(url, post("asked")))).text()).toBe("asked")
  expect(await (await httpFetch("data:text/plain,inline")).text()).toBe("inline")
})
