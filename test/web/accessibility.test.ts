import { describe, expect, test } from "vitest"
import { isComplete } from "../runs.ts"
import { violations } from "./accessibility.ts"
import {
  closeBrowserAfterwards,
  hasNoBrowser,
  openLoggedIn,
  openWindow,
  startPageServer,
} from "./open-page.ts"

closeBrowserAfterwards()

const phone = { viewport: { width: 390, height: 844 } }
const dark = { colorScheme: "dark" as const }
const windows = [["light on a phone", phone] as const, ["dark", dark] as const]

const plan = `# Plan\n\n1. one\n2. two\n\n- [x] done\n- [ ] open\n\n\`\`\`ts\nconst long = "${"x".repeat(300)}"\n\`\`\`\n\n| a | b |\n|---|---|\n| ${"wide ".repeat(40)} | c |\n\n[link](https://example.com)`

/** Starts a server with three sessions: one has ended, one asks for permission, and one has a question. */
async function startWithSessions() {
  const setup = await startPageServer(
    ({ body }) => {
      const last = JSON.stringify(body.messages.at(-1))
      if (last.includes("ask permission"))
        return {
          calls: [
            {
              name: "bash",
              arguments: { command: `npm install ${"long ".repeat(60)}`, description: "echo" },
            },
          ],
        }
      if (last.includes("ask a question"))
        return {
          calls: [
            {
              name: "question",
              arguments: { questions: [{ question: "Which?", options: [{ label: "A" }] }] },
            },
          ],
        }
      if (last.includes("fail now")) return { status: 401, text: "no key" }
      if (last.includes("write"))
        return {
          reasoning: "I think.",
          calls: [
            { name: "write", arguments: { filePath: "a.txt", content: "one\n" } },
            { name: "read", arguments: { filePath: "missing.txt" } },
            { name: "todowrite", arguments: { todos: [{ content: "One", status: "pending" }] } },
          ],
        }
      return { text: plan }
    },
    { engine: { permission: { edit: "allow" } } },
  )
  const ids: Record<string, string> = {}
  for (const [name, text] of [
    ["ended", "write a file"],
    ["permission", "ask permission"],
    ["question", "ask a question"],
  ] as const) {
    const path = await setup.session()
    ids[name] = path.slice("/session/".length)
    await setup.post(`${path}/input`, { text })
    await expect
      .poll(async () => (await setup.get(path)).body.status)
      .toBe(name === "ended" ? "idle" : "waiting")
  }
  return { ...setup, ids }
}

describe.skipIf(hasNoBrowser)("the page", () => {
  test("has no accessibility problems in the login page", async () => {
    const { server } = await startPageServer()
    const { page } = await openWindow(phone)
    await page.goto(server.url)
    await page.getByRole("heading").waitFor()
    expect(await violations(page)).toEqual([])
  })

  test.each(windows)(
    "has no accessibility problems in its views and fits the screen: %s",
    async (_, options) => {
      const { server, ids } = await startWithSessions()
      const { page, problems } = await openLoggedIn(server.url, options)
      await page.getByText("What should the agent do?").waitFor()
      expect(await violations(page)).toEqual([])
      for (const [name, role] of [
        ["ended", "Conversation"],
        ["permission", /^Permission/],
        ["question", "Question from the agent"],
      ] as const) {
        await page.goto(`${server.url}/#${ids[name]}`)
        await page.getByRole("region", { name: role }).waitFor()
        expect(await violations(page), name).toEqual([])
        const width = await page.evaluate("document.documentElement.scrollWidth - innerWidth")
        expect(width, name).toBeLessThanOrEqual(0)
        const inner = await page.evaluate(
          "(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)(document.querySelector('.scroller'))",
        )
        expect(inner, name).toBeLessThanOrEqual(0)
      }
      expect(problems).toEqual([])
    },
  )

  test.each(isComplete ? windows : windows.slice(0, 1))(
    "has no accessibility problems in dialogs, the queue, the search and errors: %s",
    async (_, options) => {
      const { server, ids, post } = await startWithSessions()
      const { page, problems } = await openLoggedIn(server.url, options)
      const check = async (what: string) => expect(await violations(page), what).toEqual([])
      await page.goto(`${server.url}/#${ids.ended}`)
      const menu = page.getByRole("button", { name: "Session menu" })
      for (const item of ["Undo the last turn…", "Permissions…", "Rename…", "Delete…"]) {
        await menu.click()
        await page.getByRole("menu").waitFor()
        await check("menu")
        await page.getByRole("menuitem", { name: item }).click()
        await page.getByRole("dialog").waitFor()
        await check(item)
        await page.keyboard.press("Escape")
        await page.getByRole("dialog").waitFor({ state: "hidden" })
      }
      await page.keyboard.press("?")
      await page.getByRole("dialog", { name: "Keyboard shortcuts" }).waitFor()
      await check("shortcuts")
      await page.keyboard.press("Escape")

      const held = await post(`/session/${ids.permission}/input`, { text: "later", delivery: "queue" })
      expect(held.status).toBe(202)
      await page.goto(`${server.url}/#${ids.permission}`)
      await page.getByRole("region", { name: "Waiting messages" }).waitFor()
      await check("queue")

      await post(`/session/${ids.ended}/input`, { text: "fail now" })
      await post(`/session/${ids.ended}/wait`)
      await page.goto(`${server.url}/#${ids.ended}`)
      await page.getByText("no key").first().waitFor()
      await check("error")

      if (options === phone) await page.getByRole("button", { name: "Sessions", exact: true }).click()
      await page.getByRole("searchbox").fill("wide")
      await page.locator("mark").first().waitFor()
      await check("search")
      await page.getByRole("searchbox").fill("nothing-like-this")
      await page.getByText("No session contains all of these words.").waitFor()
      await check("empty search")
      expect(problems).toEqual([])
    },
  )

  test("opens the list of sessions as a drawer on a phone", async () => {
    const { server, ids } = await startWithSessions()
    const { page } = await openLoggedIn(server.url, phone)
    const list = page.getByRole("navigation", { name: "Sessions" })
    expect(await list.isVisible()).toBe(false)
    await page.getByRole("button", { name: "Sessions", exact: true }).click()
    await list.locator(`a[href="/#${ids.ended}"]`).click()
    await page.getByRole("heading", { name: "Plan" }).waitFor()
    await list.waitFor({ state: "hidden" })
  })

  test("follows the system's theme until the user chooses the other", async () => {
    const { server } = await startPageServer()
    const { page } = await openLoggedIn(server.url, { colorScheme: "dark" })
    const background = () =>
      page.evaluate<string>("getComputedStyle(document.documentElement).backgroundColor")
    const dark = await background()
    await page.getByRole("button", { name: "Use the light theme" }).click()
    expect(await background()).not.toBe(dark)
    await page.reload()
    await page.getByRole("button", { name: "Use the dark theme" }).click()
    expect(await background()).toBe(dark)
  })
})
