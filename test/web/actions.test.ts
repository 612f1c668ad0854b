import type { Page } from "playwright-core"
import { describe, expect, test } from "vitest"
import { task } from "../session/family.ts"
import { violations } from "./accessibility.ts"
import {
  closeBrowserAfterwards,
  hasNoBrowser,
  openLoggedIn,
  startPageServer,
  startSession,
} from "./open-page.ts"

closeBrowserAfterwards()

async function choose(page: Page, item: string): Promise<void> {
  await page.getByRole("button", { name: "Session menu" }).click()
  await page.getByRole("menuitem", { name: item }).click()
}

async function send(page: Page, text: string): Promise<void> {
  await page.getByRole("textbox", { name: "Message", exact: true }).fill(text)
  await page.keyboard.press("Enter")
}

function openID(page: Page): string {
  return new URL(page.url()).hash.slice(1)
}

describe.skipIf(hasNoBrowser)("the page", () => {
  test("forks a session as a whole and from an earlier turn", async () => {
    const { server, get } = await startPageServer([{ text: "One." }, { text: "Two." }, { text: "Three." }])
    const { page } = await openLoggedIn(server.url)
    await startSession(page, "first")
    await page.getByText("One.").waitFor()
    await send(page, "second")
    await page.getByText("Two.").waitFor()
    const original = openID(page)
    await choose(page, "Fork")
    await page.getByText("This is a copy of the session.").waitFor()
    await expect.poll(() => openID(page)).not.toBe(original)
    await page.getByText("Two.").waitFor()
    await page.goto(`${server.url}/#${original}`)
    await page.getByText("Two.").waitFor()
    // The message would cover the first turn.
    expect(await page.getByText("This is a copy of the session.").count()).toBe(0)
    await page.getByRole("article", { name: "You" }).first().hover()
    await page.getByRole("button", { name: "Fork from this turn" }).first().click()
    await expect.poll(() => openID(page)).not.toBe(original)
    await page.getByText("One.").waitFor()
    expect(await page.getByText("Two.").count()).toBe(0)
    await send(page, "third")
    await page.getByText("Three.").waitFor()
    const { body } = await get(`/session/${original}/message`)
    expect(body.items).toHaveLength(4)
  })

  test("summarizes older messages", async () => {
    const { server, post } = await startPageServer(({ body }) => ({
      text: JSON.stringify(body.messages.at(-1)).includes("summary")
        ? "The summary."
        : "Many words. ".repeat(400),
    }))
    const { page } = await openLoggedIn(server.url)
    await startSession(page, "first")
    await page.getByText("Many words.").waitFor()
    const path = `/session/${openID(page)}`
    for (let index = 0; index < 4; index += 1) {
      await post(`${path}/input`, { text: `question ${index} ${"long ".repeat(300)}` })
      await post(`${path}/wait`)
    }
    await choose(page, "Summarize older messages")
    await page
      .getByText(/The history is shorter: the model now reads \d+ characters instead of \d+\./)
      .waitFor()
    await page.getByText("Older messages were replaced by a summary").waitFor({ state: "attached" })
  })

  test("renames and deletes a session", async () => {
    const { server, get } = await startPageServer([{ text: "One." }])
    const { page } = await openLoggedIn(server.url)
    await startSession(page, "first")
    await page.getByText("One.").waitFor()
    const path = `/session/${openID(page)}`
    await choose(page, "Rename…")
    await page.getByRole("textbox", { name: "Title" }).fill("My title")
    await page.keyboard.press("Enter")
    await page.getByRole("heading", { name: "My title" }).waitFor()
    await page.getByRole("navigation").getByText("My title").waitFor()
    expect((await get(path)).body.title).toBe("My title")
    await choose(page, "Delete…")
    await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click()
    expect((await get(path)).status).toBe(200)
    await choose(page, "Delete…")
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click()
    await page.getByText("What should the agent do?").waitFor()
    expect(await page.getByRole("navigation").getByText("My title").count()).toBe(0)
    expect((await get(path)).status).toBe(404)
  })

  test("starts a session with the chosen agent and model, and changes them for the next prompt", async () => {
    const { server, model, get } = await startPageServer(() => ({ text: "Done." }))
    const { page } = await openLoggedIn(server.url)
    await page.getByRole("combobox", { name: "Agent" }).selectOption("plan")
    await page.getByRole("combobox", { name: "Model" }).selectOption("test/other")
    await startSession(page, "first")
    await page.getByText("Done.").waitFor()
    const info = async () => {
      const { agent, model } = (await get(`/session/${openID(page)}`)).body
      return [agent, model.modelID]
    }
    expect(await info()).toEqual(["plan", "other"])
    expect(model.requests.at(-1)?.body.model).toBe("other")
    await page.getByRole("combobox", { name: "Agent" }).selectOption("build")
    await page.getByRole("combobox", { name: "Model" }).selectOption("test/m")
    await expect.poll(info).toEqual(["build", "m"])
    await send(page, "second")
    await expect.poll(() => page.getByText("Done.").count()).toBe(2)
    expect(model.requests.at(-1)?.body.model).toBe("m")
  })

  test("shows the calls of a subagent inside its call, also after a reload", async () => {
    const { server } = await startPageServer(
      ({ body }) => {
        const prompt = body.messages.findLastIndex(({ role }) => role === "user")
        const step = body.messages.length - prompt
        const isChild = JSON.stringify(body.messages[prompt]).includes("look around")
        if (isChild)
          return step === 1
            ? { calls: [{ name: "bash", arguments: { command: "echo inside", description: "say" } }] }
            : { text: "I looked." }
        return step === 1 ? { calls: [task("look around")] } : { text: "All done." }
      },
      { engine: { permission: { "*": "allow", bash: "ask" } } },
    )
    const { page } = await openLoggedIn(server.url)
    await startSession(page, "go")
    const card = page.getByRole("region", { name: /^Permission/ })
    await card.getByText("Subagent general asks").waitFor()
    const subagent = page.getByRole("region", { name: "Subagent general" })
    const call = subagent.getByRole("button", { name: /bash echo inside/ })
    await call.waitFor()
    await card.getByRole("button", { name: "Allow once" }).click()
    await page.getByText("All done.").waitFor()
    const outer = page.getByRole("button", { name: /task/ })
    for (const isReloaded of [false, true]) {
      if (isReloaded) await page.reload()
      await outer.waitFor()
      if ((await outer.getAttribute("aria-expanded")) === "false") await outer.click()
      await call.click()
      await subagent
        .getByRole("region", { name: "Output of bash" })
        .getByText(/^inside/)
        .waitFor()
      await subagent.getByText("I looked.").first().waitFor()
    }
    expect(await violations(page)).toEqual([])
  })

  test("shows the output of a command while it runs", async () => {
    const command = "echo first; while [ ! -e go ]; do sleep 0.1; done; echo second"
    const { server, project } = await startPageServer(
      [{ calls: [{ name: "bash", arguments: { command, description: "wait" } }] }, { text: "Ended." }],
      { engine: { permission: { "*": "allow" } } },
    )
    const { page } = await openLoggedIn(server.url)
    await startSession(page, "run")
    const output = page.getByRole("region", { name: "Output so far" })
    await output.getByText("first", { exact: true }).waitFor()
    expect(await output.innerText()).not.toContain("second")
    await project.write("go", "")
    await page.getByText("Ended.").waitFor()
    await page.getByRole("button", { name: /bash/ }).click()
    expect(await page.getByRole("region", { name: "Output of bash" }).innerText()).toContain("second")
  })

  test("says in a subagent's session which grants apply to it", async () => {
    const { server, get, post } = await startPageServer(
      ({ body }) => {
        const prompt = body.messages.findLastIndex(({ role }) => role === "user")
        if (body.messages.length - prompt > 1) return { text: "Done." }
        const isChild = JSON.stringify(body.messages[prompt]).includes("look around")
        const command = { name: "bash", arguments: { command: "npm --version", description: "version" } }
        return { calls: [isChild ? command : task("look around")] }
      },
      { engine: { permission: { "*": "allow", bash: "ask" } } },
    )
    const { page } = await openLoggedIn(server.url)
    await startSession(page, "go")
    const card = page.getByRole("region", { name: /^Permission/ })
    await card.getByRole("button", { name: /^Session/ }).click()
    await post(`/session/${openID(page)}/wait`)
    const { body } = await get(`/session/${openID(page)}/message`)
    const [, child] = /"metadata":\{"sessionID":"(ses_\w+)"/.exec(JSON.stringify(body)) ?? []
    await page.goto(`${server.url}/#${child}`)
    await choose(page, "Permissions…")
    await page.getByRole("dialog").getByText("in this session").waitFor()
  })

  test('lists and revokes the permissions that the user granted with "always"', async () => {
    const command = { name: "bash", arguments: { command: "npm --version", description: "version" } }
    const { server, get, directory } = await startPageServer([
      { calls: [command] },
      { text: "First." },
      { calls: [command] },
      { text: "Second." },
      { calls: [command] },
      { text: "Third." },
    ])
    const { page } = await openLoggedIn(server.url)
    await startSession(page, "one")
    await page.getByRole("button", { name: "Project", exact: false }).last().click()
    await page.getByText("First.").waitFor()
    await send(page, "two")
    await page.getByText("Second.").waitFor()
    await choose(page, "Permissions…")
    const dialog = page.getByRole("dialog")
    await dialog.getByText("in all sessions of this project").waitFor()
    expect(await dialog.getByRole("listitem").innerText()).toMatch(/^Run npm --version/)
    expect(await violations(page)).toEqual([])
    await dialog.getByRole("button", { name: "Revoke Run npm --version" }).click()
    await dialog.getByText("Nothing. The agent asks each time").waitFor()
    expect((await get(`/grant?directory=${encodeURIComponent(directory)}`)).body.items).toEqual([])
    await page.keyboard.press("Escape")
    await send(page, "three")
    await page.getByRole("region", { name: /^Permission/ }).waitFor()
  })
})
