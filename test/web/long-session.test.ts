import { expect, test } from "vitest"
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
