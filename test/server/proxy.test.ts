import { once } from "node:events"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { describe, expect, onTestFinished, test } from "vitest"
import type { Script } from "../../src/testing/model-server.ts"
import { gatewayFor } from "../gateway/start-gateway.ts"
import { hasNoNginx, startProxy } from "../nginx.ts"
import { setUp, tokens } from "./start-server.ts"

/** A model whose second answer waits until `release` is called. */
function twoSteps() {
  const { promise, resolve: release } = Promise.withResolvers<void>()
  const script: Script = async (_, index) => {
    if (index === 0) return { text: "First words.", calls: [{ name: "list", arguments: {} }] }
    await promise
    return { text: "Last words." }
  }
  return { script, release }
}

const authorization = `Bearer ${tokens.admin}`

function post(url: string, body: object): Promise<Response> {
  const headers = { authorization, "content-type": "application/json", accept: "text/event-stream" }
  return fetch(url, { method: "POST", headers, body: JSON.stringify(body) })
}

const follow = (url: string) => fetch(url, { headers: { authorization } })

const chat = { messages: [{ id: "one", role: "user", parts: [{ type: "text", text: "hello" }] }] }
const agui = { threadId: "t", runId: "r", messages: [{ id: "one", role: "user", content: "hello" }] }

/** Reads the answer up to each text, and calls `between` after the first one has arrived. */
async function readBoth(answer: Response, texts: readonly [string, string], between: () => void) {
  const [first, last] = texts
  let text = ""
  let isReleased = false
  for await (const chunk of answer.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += chunk
    if (!isReleased && text.includes(first)) {
      expect(text).not.toContain(last)
      isReleased = true
      between()
    }
    if (text.includes(last)) return
  }
  throw new Error(`The answer ended: ${text}`)
}

describe.skipIf(hasNoNginx)("through nginx with its defaults", () => {
  test.for([
    { path: "chat", open: (url: string, session: string) => post(`${url}${session}/chat`, chat) },
    { path: "agui", open: (url: string, session: string) => post(`${url}${session}/agui`, agui) },
  ])("$path sends each piece when it exists", async ({ open }) => {
    const { script, release } = twoSteps()
    const { server, session } = await setUp(script)
    const proxy = await startProxy(server.url)
    const answer = await open(proxy, await session())
    await readBoth(answer, ["First words.", "Last words."], release)
  })

  test.for([
    { name: "/session/{id}/event", path: (session: string) => `${session}/event?after=0` },
    { name: "/event", path: () => "/event" },
    { name: "/opencode/event", path: () => "/opencode/event" },
  ])("$name sends each event when it happens", async ({ path }) => {
    const { script, release } = twoSteps()
    const { server, session, post: send } = await setUp(script)
    const proxy = await startProxy(server.url)
    const id = await session()
    const answer = await follow(`${proxy}${path(id)}`)
    await send(`${id}/input`, { text: "hello" })
    await readBoth(answer, ["First words.", "Last words."], release)
  })

  test("a resumed chat sends each piece when it exists", async () => {
    const { script, release } = twoSteps()
    const { server, session, post: send } = await setUp(script)
    const proxy = await startProxy(server.url)
    const id = await session()
    await send(`${id}/input`, { text: "hello" })
    const answer = await follow(`${proxy}${id}/chat/any/stream`)
    await readBoth(answer, ["First words.", "Last words."], release)
  })

  test("a call sends its progress", async () => {
    const { server, project, directory } = await setUp([], { engine: { permission: { bash: "allow" } } })
    const proxy = await startProxy(server.url)
    const command = "echo First words.; until [ -e go ]; do sleep 0.05; done; echo Last words."
    const answer = await post(`${proxy}/tool/bash/call`, {
      directory,
      arguments: { command, description: "Wait for a file" },
      stream: true,
    })
    await readBoth(answer, ["First words.\\n", "Last words.\\n"], () => void project.write("go", ""))
  })

  test("the gateway sends each piece when it exists", async () => {
    const { promise, resolve: release } = Promise.withResolvers<void>()
    const chunk = (content: string) =>
      `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", choices: [{ index: 0, delta: { content } }] })}\n\n`
    const upstream = createServer(async (_, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" })
      response.write(chunk("First words."))
      await promise
      response.end(`${chunk("Last words.")}data: [DONE]\n\n`)
    }).listen(0, "127.0.0.1")
    await once(upstream, "listening")
    onTestFinished(() => void upstream.close())
    const { port } = upstream.address() as AddressInfo
    const { gateway } = await gatewayFor(`http://127.0.0.1:${port}/v1`, { policy: "native" })
    const url = new URL(gateway.url)
    const proxy = await startProxy(url.origin)
    const answer = await post(`${proxy}${url.pathname}/chat/completions`, {
      model: "m",
      stream: true,
      messages: [{ role: "user", content: "Go." }],
    })
    await readBoth(answer, ["First words.", "Last words."], release)
  })
})
