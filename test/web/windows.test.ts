import { subscribe, unsubscribe } from "node:diagnostics_channel"
import type { IncomingMessage, ServerResponse } from "node:http"
import type { Page } from "playwright-core"
import { describe, expect, onTestFinished, test } from "vitest"
import { startCuttingProxy } from "../client/cutting-proxy.ts"
import {
  closeBrowserAfterwards,
  hasNoBrowser,
  openLoggedIn,
  startPageServer,
  startSession,
} from "./open-page.ts"

closeBrowserAfterwards()

/** Returns the addresses of the event streams that are open on the servers of this process. */
function openStreams(): Set<string> {
  const open = new Set<string>()
  const onRequest = (message: unknown) => {
    const { request, response } = message as { request: IncomingMessage; response: ServerResponse }
    const { url = "" } = request
    if (!/^\/event|\/event\?/.test(url)) return
    open.add(url)
    response.once("close", () => open.delete(url))
  }
  subscribe("http.server.request.start", onRequest)
  onTestFinished(() => void unsubscribe("http.server.request.start", onRequest))
  return open
}

/** Hides or shows a page, as if the user changed to another tab. */
async function setVisible(page: Page, isVisible: boolean): Promise<void> {
  await page.evaluate(
    (state) => {
      const { document } = globalThis as unknown as { document: EventTarget }
      Object.defineProperty(document, "visibilityState", { value: state, configurable: true })
      document.dispatchEvent(new Event("visibilitychange"))
    },
    isVisible ? "visible" : "hidden",
  )
}

describe.skipIf(hasNoBrowser)("windows of one browser", () => {
  test("share one event stream, because a browser has only six connections to a server", async () => {
    const { server, post } = await startPageServer(({ body }) => ({
      text: `Answer to ${JSON.stringify(body.messages.at(-1)).match(/question \d+/)?.[0]}`,
    }))
    const streams = openStreams()
    const { page, context, problems } = await openLoggedIn(server.url)
    const pages = [page]
    await startSession(page, "question 0")
    for (let index = 1; index < 8; index += 1) {
      const next = await context.newPage()
      pages.push(next)
      await next.goto(server.url)
      await startSession(next, `question ${index}`)
    }
    const pathOf = (each: Page) => `/session/${new URL(each.url()).hash.slice(1)}`
    for (const [index, each] of pages.entries()) {
      await each.getByText(`Answer to question ${index}`).waitFor()
      await post(`${pathOf(each)}/input`, { text: `question ${index + 20}` })
      await each.getByText(`Answer to question ${index + 20}`).waitFor()
      await expect.poll(() => streams.size).toBe(1)
    }
    // Each window also follows the sessions of the others.
    expect(await page.locator(".session").count()).toBe(8)
    // The window that was opened first does not carry the stream of the others.
    const [, second, third] = pages
    if (!second || !third) throw new Error("No window.")
    await page.close()
    await second.goto(third.url())
    await post(`${pathOf(third)}/input`, { text: "question 40" })
    for (const each of [second, third]) await each.getByText("Answer to question 40").waitFor()
    for (const each of pages.slice(1)) await each.close()
    await expect.poll(() => streams.size).toBe(0)
    expect(problems).toEqual([])
  })

  test("continue after the server was started again, with the text that they missed", async () => {
    const { server, post } = await startPageServer([
      { text: "slow ".repeat(400), pieceSize: 5, pieceDelayMs: 20 },
      { text: "Second answer." },
    ])
    await using proxy = await startCuttingProxy(server.url)
    const { page, context } = await openLoggedIn(proxy.url)
    await startSession(page, "Start")
    await page.getByText("slow slow").waitFor()
    const other = await context.newPage()
    await other.goto(page.url())
    await other.getByText("slow slow").waitFor()
    proxy.cut()
    const path = `/session/${new URL(page.url()).hash.slice(1)}`
    await post(`${path}/interrupt`)
    await post(`${path}/input`, { text: "again" })
    await post(`${path}/wait`)
    for (const each of [page, other]) {
      await each.getByText("Second answer.").waitFor()
      await each.getByRole("button", { name: "Stop" }).waitFor({ state: "detached" })
    }
  })

  test("close their stream while they are hidden, and continue it when they are shown", async () => {
    const { server, post } = await startPageServer(({ body }) => {
      const last = JSON.stringify(body.messages.at(-1))
      if (last.includes("ask me"))
        return { calls: [{ name: "question", arguments: { questions: [{ question: "Which one?" }] } }] }
      return { text: "An answer." }
    })
    const { page } = await openLoggedIn(server.url)
    const streams = openStreams()
    await page.clock.install()
    await startSession(page, "First")
    await page.getByText("An answer.").waitFor()
    await expect.poll(() => streams.size).toBe(1)
    await setVisible(page, false)
    await page.clock.fastForward(5_000)
    expect(streams.size).toBe(1)
    await page.clock.fastForward(6_000)
    await expect.poll(() => streams.size).toBe(0)
    const path = `/session/${new URL(page.url()).hash.slice(1)}`
    await post(`${path}/input`, { text: "please ask me" })
    expect(await page.title()).not.toContain("●")
    await expect
      .poll(async () => {
        await page.clock.fastForward(20_000)
        return page.title()
      })
      .toContain("●")
    expect(await page.getByText("please ask me").count()).toBe(0)
    const requests: string[] = []
    page.on("request", (request) => requests.push(request.url()))
    await setVisible(page, true)
    await page.getByText("Which one?").waitFor()
    await page.getByText("please ask me").waitFor()
    expect(requests.filter((url) => url.includes("/message"))).toEqual([])
    await expect
      .poll(() => [...streams].map((url) => /^\/event\?follow=ses_\w+:[1-9]/.test(url)))
      .toEqual([true])
  })
})
