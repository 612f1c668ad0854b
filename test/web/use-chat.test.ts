import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { rolldown } from "rolldown"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import type { Script } from "../../src/testing/model-server.ts"
import { setUp, tokens } from "../server/start-server.ts"
import { closeBrowserAfterwards, hasNoBrowser, openWindow } from "./open-page.ts"

closeBrowserAfterwards()

/** A page of another origin with a React application. */
let application: { origin: string; close(): void }

async function startApplication() {
  const bundle = await rolldown({
    input: join(import.meta.dirname, "chat-page.mjs"),
    platform: "browser",
    logLevel: "silent",
    transform: { define: { "process.env.NODE_ENV": '"production"' } },
  })
  const { output } = await bundle.generate({ format: "es", codeSplitting: false })
  await bundle.close()
  const files = new Map([
    [
      "/",
      { type: "text/html", content: '<div id="root"></div><script type="module" src="/app.js"></script>' },
    ],
    ["/app.js", { type: "text/javascript", content: output[0].code }],
  ])
  const server = createServer(({ url = "" }, response) => {
    const file = files.get(url)
    response.writeHead(file ? 200 : 404, { "content-type": file?.type ?? "text/plain" }).end(file?.content)
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const { port } = server.address() as AddressInfo
  return { origin: `http://127.0.0.1:${port}`, close: () => server.close() }
}

const said = Array.from({ length: 80 }, (_, index) => `word${index}`).join(" ")

const script: Script = ({ body: { messages } }) =>
  messages.at(-1)?.role === "user"
    ? {
        text: said,
        calls: [{ name: "write", arguments: { filePath: "made.txt", content: "made" } }],
        pieceSize: 6,
        pieceDelayMs: 25,
      }
    : { text: "It is done." }

describe.skipIf(hasNoBrowser)("useChat in a React application", () => {
  beforeAll(async () => {
    application = await startApplication()
  })
  afterAll(() => application.close())

  test("finishes a task after a reload in the middle of the text and an approved permission", async () => {
    const { server, project, request, directory } = await setUp(script, { origins: [application.origin] })
    const { body: session } = await request("POST", "/session", { body: { directory } })
    const { page, problems } = await openWindow()
    const parameters = {
      api: `${server.url}/session/${session.id}/chat`,
      token: tokens.run,
      session: session.id,
    }
    await page.goto(`${application.origin}/#${new URLSearchParams(parameters)}`)
    await page.getByRole("status").getByText("ready").waitFor()
    await page.getByRole("button", { name: "Send" }).click()
    await page.getByText("word3").waitFor()
    await page.reload()
    await page.getByRole("button", { name: "Approve" }).click()
    await page.getByText("It is done.").waitFor()
    await page.getByText("write output-available").waitFor()
    await page.getByRole("status").getByText("ready").waitFor()
    expect(await page.locator("[data-role=assistant] p").allTextContents()).toEqual([said, "It is done."])
    expect(await page.locator("[data-role=assistant] code").allTextContents()).toEqual([
      "write output-available",
    ])
    expect(await project.read("made.txt")).toBe("made")
    expect((await request("GET", `/session/${session.id}`)).body.status).toBe("idle")
    expect(problems).toEqual([])
  })
})
