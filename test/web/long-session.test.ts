import type { Page } from "playwright-core"
import { expect, onTestFinished, test } from "vitest"
import { startCuttingProxy } from "../client/cutting-proxy.ts"
import { closeBrowserAfterwards, hasNoBrowser, openLoggedIn, startPageServer } from "./open-page.ts"

closeBrowserAfterwards()

/** Returns an archive of a session with this number of messages. */
function longSession(directory: string, count: number) {
  const id = "ses_long"
  const model = { providerID: "test", modelID: "m" }
  const time = { created: 1, updated: 1 }
  const messages = Array.from({ length: count }, (_, index) => {
    const own = `msg_${String(index).padStart(6, "0")}`
    const base = { id: own, sessionID: id, agent: "build", model }
    const message =
      index % 2 === 0
        ? { ...base, role: "user", time: { created: index } }
        : {
            ...base,
            role: "assistant",
            parentID: `msg_${String(index - 1).padStart(6, "0")}`,
            time: { created: index, completed: index },
            path: { cwd: directory, root: directory },
            cost: 0,
            tokens: { input: 1, output: 1, reasoning: 0, cache: { read: 0, write: 0 } },
            finish: "stop",
          }
    const text =
      index % 2 === 0 ? `Question ${index}` : `Answer **${index}** with \`code\`.\n\n- one\n- two\n`
    const part = { id: `prt_${own.slice(4)}`, sessionID: id, messageID: own, type: "text", text }
    return { message, parts: [part] }
  })
  const session = { id, title: "Long", directory, worktree: directory, agent: "build", model, time }
  return { format: "tackle.session", version: 1, session, messages, todos: [], children: [] }
}

test.skipIf(hasNoBrowser)(
  "loads the newest 100 of 5,000 messages, and older ones while the user scrolls",
  async () => {
    const { server, post, directory } = await startPageServer()
    const imported = await post("/session/import", { directory, archive: longSession(directory, 5_000) })
    expect(imported.status).toBe(201)
    const { page } = await openLoggedIn(server.url)
    await page.goto(`${server.url}/#ses_long`)
    await page.getByText("Answer 4999 with").waitFor()
    const count = () => page.locator(".message").count()
    expect(await count()).toBe(100)
    // Native scrolling: the message at the top stays there while older messages arrive above it.
    for (const expected of [200, 300, 400]) {
      await page.evaluate("document.querySelector('.scroller').scrollTop = 100")
      await expect.poll(count).toBeGreaterThanOrEqual(expected)
      const top = await page.evaluate("document.querySelector('.scroller').scrollTop")
      expect(top).toBeGreaterThan(1_000)
    }
    // The browser renders only the messages near the visible part.
    const styles = await page.evaluate(
      "[...new Set([...document.querySelectorAll('.message')].map((each) => getComputedStyle(each).contentVisibility))]",
    )
    expect(styles).toEqual(["auto"])
    const skipped = await page.evaluate(
      "[...document.querySelectorAll('.message .markdown')].filter((each) => !each.checkVisibility({ contentVisibilityAuto: true })).length",
    )
    expect(skipped).toBeGreaterThan(100)
  },
)

/** Returns the message at the top of the visible part, and its distance from the top in pixels. */
function topMessage(page: Page): Promise<{ text: string; top: number }> {
  return page.evaluate(`(() => {
    const { top, left } = document.querySelector(".scroller").getBoundingClientRect()
    const found = [...document.querySelectorAll(".message")].find((each) => each.getBoundingClientRect().bottom > top)
    return { text: found.textContent.slice(0, 12), top: Math.round(found.getBoundingClientRect().top - top) }
  })()`)
}

function distanceFromEnd(page: Page): Promise<number> {
  return page.evaluate(
    "(({ scrollHeight, scrollTop, clientHeight }) => scrollHeight - scrollTop - clientHeight)(document.querySelector('.scroller'))",
  )
}

test.skipIf(hasNoBrowser)(
  "keeps the place of a reader after a reload or an interruption and while the agent answers, and otherwise follows the end",
  async () => {
    const { server, post, directory } = await startPageServer(() => ({
      text: "A new answer.\n\n".repeat(30),
    }))
    await post("/session/import", { directory, archive: longSession(directory, 400) })
    const proxy = await startCuttingProxy(server.url)
    onTestFinished(() => proxy[Symbol.asyncDispose]())
    const { page } = await openLoggedIn(proxy.url)
    await page.goto(`${proxy.url}/#ses_long`)
    await page.getByText("Answer 399 with").waitFor()
    const place = async () => {
      const { text, top } = await topMessage(page)
      return `${text} ${top}`
    }
    // Two pages of older messages above the newest ones.
    for (const count of [200, 300]) {
      await page.evaluate("document.querySelector('.scroller').scrollTop = 100")
      await expect.poll(() => page.locator(".message").count()).toBeGreaterThanOrEqual(count)
    }
    await page.evaluate("document.querySelector('.message:nth-child(20)').scrollIntoView()")
    await page.mouse.move(700, 300)
    await page.mouse.wheel(0, 33)
    await page.evaluate("new Promise((resolve) => setTimeout(resolve, 300))")
    const before = await place()
    await page.reload()
    await expect.poll(place).toBe(before)
    await page.getByRole("button", { name: "Latest" }).waitFor()
    await post("/session/ses_long/input", { text: "More" })
    await post("/session/ses_long/wait")
    await page.getByText("A new answer.").first().waitFor({ state: "attached" })
    expect(await place()).toBe(before)
    proxy.refuse()
    await page.getByText("The server does not respond.").waitFor()
    await post("/session/ses_long/input", { text: "Meanwhile" })
    await post("/session/ses_long/wait")
    proxy.accept()
    await page.getByText("Meanwhile").waitFor({ state: "attached" })
    await page.getByText("The server does not respond.").waitFor({ state: "detached" })
    expect(await place()).toBe(before)
    await page.getByRole("button", { name: "Latest" }).click()
    await expect.poll(() => distanceFromEnd(page)).toBeLessThan(2)
    await page.evaluate("new Promise((resolve) => setTimeout(resolve, 300))")
    await page.reload()
    await page.getByText("A new answer.").first().waitFor()
    await expect.poll(() => distanceFromEnd(page)).toBeLessThan(2)
    await post("/session/ses_long/input", { text: "Even more" })
    await post("/session/ses_long/wait")
    await page.getByText("Even more").waitFor()
    await expect.poll(() => distanceFromEnd(page)).toBeLessThan(2)
  },
)
