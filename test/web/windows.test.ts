import type { Page } from "playwright-core"
import { describe, expect, test } from "vitest"
import {
  closeBrowserAfterwards,
  hasNoBrowser,
  openLoggedIn,
  startPageServer,
  startSession,
} from "./open-page.ts"

closeBrowserAfterwards()

/** Returns the addresses of the event streams that a page has open. */
function openStreams(page: Page): Set<string> {
  const open = new Set<string>()
  page.on("request", (request) => request.url().includes("/event") && open.add(request.url()))
  page.on("requestfailed", (request) => open.delete(request.url()))
  page.on("requestfinished", (request) => open.delete(request.url()))
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
  test("follow their sessions at the same time, although a browser has only six connections to a server", async () => {
    const { server, post } = await startPageServer(({ body }) => ({
      text: `Answer to ${JSON.stringify(body.messages.at(-1)).match(/question \d/)?.[0]}`,
    }))
    const { page, context } = await openLoggedIn(server.url)
    const streams = [openStreams(page)]
    const pages = [page]
    await startSession(page, "question 0")
    for (let index = 1; index < 5; index += 1) {
      const next = await context.newPage()
      streams.push(openStreams(next))
      pages.push(next)
      await next.goto(server.url)
      await startSession(next, `question ${index}`)
    }
    for (const [index, each] of pages.entries()) {
      await each.getByText(`Answer to question ${index}`).waitFor()
      const path = `/session/${new URL(each.url()).hash.slice(1)}`
      await post(`${path}/input`, { text: `second question ${index + 5}` })
      await each.getByText(`Answer to question ${index + 5}`).waitFor()
      expect([...(streams[index] ?? [])]).toHaveLength(1)
    }
    // Each window also follows the sessions of the others.
    expect(await page.locator(".session").count()).toBe(5)
  })

  test("close their stream while they are hidden, and continue it when they are shown", async () => {
    const { server, post } = await startPageServer(({ body }) => {
      const last = JSON.stringify(body.messages.at(-1))
      if (last.includes("ask me"))
        return { calls: [{ name: "question", arguments: { questions: [{ question: "Which one?" }] } }] }
      return { text: "An answer." }
    })
    const { page } = await openLoggedIn(server.url)
    const streams = openStreams(page)
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
    expect(requests.some((url) => /event\?after=[1-9]/.test(url))).toBe(true)
    await expect.poll(() => streams.size).toBe(1)
  })
})
