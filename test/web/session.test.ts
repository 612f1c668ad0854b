import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { gzipSync } from "node:zlib"
import { describe, expect, test } from "vitest"
import type { Reply } from "../../src/testing/reply.ts"
import { tool } from "../session/run.ts"
import {
  builtPage,
  closeBrowserAfterwards,
  hasNoBrowser,
  loginAddress,
  openLoggedIn,
  openWindow,
  startPageServer,
  startSession,
} from "./open-page.ts"

closeBrowserAfterwards()

test("keeps the script of the page below 60 KB", () => {
  const scripts = readdirSync(builtPage).filter((name) => name.endsWith(".js"))
  // The page, and the worker that all windows share.
  expect(scripts).toHaveLength(2)
  const sizes = scripts.map((name) => gzipSync(readFileSync(join(builtPage, name)), { level: 9 }).length)
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(60_000)
})

/** Asks for a file, and then says that it is done. */
const writeFile: Reply[] = [
  {
    text: "I write the file.",
    calls: [{ name: "write", arguments: { filePath: "notes.txt", content: "hello\nworld\n" } }],
  },
  { text: "The file is **written**." },
]

/** Lets the model write a note, changes the note, and asks for the undo of the turn. Returns the page. */
async function undoChangedNote(script: Reply[]) {
  const { server, project } = await startPageServer(script, { engine: { permission: { edit: "allow" } } })
  const { page } = await openLoggedIn(server.url)
  await startSession(page, "Write a note")
  await page.getByText("The file is written.").waitFor()
  await project.write("notes.txt", "changed\n")
  await page.getByRole("button", { name: "Session menu" }).click()
  await page.getByRole("menuitem", { name: "Undo" }).click()
  await page.getByRole("button", { name: "Undo", exact: true }).click()
  return page
}

describe.skipIf(hasNoBrowser)("the page in a browser", () => {
  test("starts a session even if the user sends before the directories are known", async () => {
    const { server } = await startPageServer([{ text: "Here I am." }])
    const { page, context } = await openWindow()
    const sent = Promise.withResolvers<void>()
    await context.route("**/root", async (route) => {
      await sent.promise
      await route.continue()
    })
    await page.goto(await loginAddress(server.url))
    await page.getByRole("textbox", { name: "Message" }).fill("Are you there?")
    await page.keyboard.press("Enter")
    sent.resolve()
    await page.getByText("Here I am.").waitFor()
  })

  test("finishes a task after the user allows a change", async () => {
    const { server, project } = await startPageServer(writeFile)
    const { page, problems } = await openLoggedIn(server.url)
    await startSession(page, "Write a note")
    const card = page.getByRole("region", { name: /^Permission: edit/ })
    await card.getByText("hello").waitFor()
    await card.getByText("the default is to ask").waitFor()
    await card.getByRole("button", { name: "Allow once" }).click()
    await page.getByText("The file is written.").waitFor()
    expect(await page.locator("strong").textContent()).toBe("written")
    expect(await project.read("notes.txt")).toBe("hello\nworld\n")
    await card.waitFor({ state: "detached" })
    expect(problems).toEqual([])
  })

  test("shows the progress of a running call as a bar", async () => {
    const finish = Promise.withResolvers<void>()
    const deploy = tool("deploy", async (_, ctx) => {
      await ctx.metadata({ title: "uploading", progress: 50 })
      await finish.promise
      return { title: "deployed", output: "ok" }
    })
    const script = [{ calls: [{ name: "deploy", arguments: {} }] }, { text: "It is deployed." }]
    const engine = { tools: [deploy], permission: { deploy: "allow" as const } }
    const { server } = await startPageServer(script, { engine })
    const { page } = await openLoggedIn(server.url)
    await startSession(page, "Deploy")
    const bar = page.getByRole("progressbar")
    await bar.waitFor()
    expect(await bar.getAttribute("value")).toBe("0.5")
    await page.getByText("uploading · 50%").waitFor()
    finish.resolve()
    await page.getByText("It is deployed.").waitFor()
    await bar.waitFor({ state: "detached" })
  })

  test("uses a ticket once and removes it from the address", async () => {
    const { server } = await startPageServer()
    const address = await loginAddress(server.url)
    const first = await openWindow()
    await first.page.goto(address)
    await first.page.getByText("What should the agent do?").waitFor()
    expect(first.page.url()).toBe(`${server.url}/`)
    await first.page.reload()
    await first.page.getByText("What should the agent do?").waitFor()
    const second = await openWindow()
    await second.page.goto(address)
    await second.page.getByRole("heading", { name: "Log in to Tackle" }).waitFor()
    expect(second.page.url()).toBe(`${server.url}/`)
  })

  test("logs in with a pasted token, and out again", async () => {
    const { server } = await startPageServer()
    const { page } = await openWindow()
    await page.goto(server.url)
    const token = page.getByLabel("Or paste a token")
    await token.fill("wrong-token")
    await page.getByRole("button", { name: "Log in" }).click()
    await page.getByRole("alert").getByText("does not know this token").waitFor()
    await token.fill("admin-token-0123456789abcdef012345678")
    await page.getByRole("button", { name: "Log in" }).click()
    await page.getByText("What should the agent do?").waitFor()
    await page.getByRole("button", { name: "Log out" }).click()
    await page.getByRole("heading", { name: "Log in to Tackle" }).waitFor()
  })

  test("loses nothing when it is reloaded while the agent answers", async () => {
    const words = Array.from({ length: 120 }, (_, index) => `word${index}`)
    const { server } = await startPageServer([{ text: words.join(" "), pieceSize: 8, pieceDelayMs: 8 }])
    const { page } = await openLoggedIn(server.url)
    await startSession(page, "Count")
    await page.getByText("word20 ").waitFor()
    await page.reload()
    await page.getByText("word119").waitFor()
    expect(await page.locator(".answer .markdown").innerText()).toBe(words.join(" "))
  })

  test("tells the other window that a request is answered", async () => {
    const { server, project } = await startPageServer(writeFile)
    const first = await openLoggedIn(server.url)
    await startSession(first.page, "Write a note")
    const second = await openLoggedIn(server.url)
    await second.page.goto(first.page.url())
    await second.page.getByRole("button", { name: "Reject" }).waitFor()
    await first.page.getByRole("button", { name: "Allow once" }).click()
    await second.page.getByText("The request was allowed once in another window.").waitFor()
    await second.page.getByRole("button", { name: "Reject" }).waitFor({ state: "detached" })
    await second.page.getByText("The file is written.").waitFor()
    expect(await first.page.getByText("in another window").count()).toBe(0)
    expect(await project.read("notes.txt")).toBe("hello\nworld\n")
  })

  test("works with the keyboard only", async () => {
    const { server, project } = await startPageServer([...writeFile, { text: "Second answer." }])
    const { page } = await openLoggedIn(server.url)
    const { keyboard } = page
    await page.getByText("What should the agent do?").waitFor()
    await keyboard.press("?")
    await page.getByRole("dialog", { name: "Keyboard shortcuts" }).waitFor()
    await keyboard.press("Escape")
    await page.getByRole("dialog").waitFor({ state: "hidden" })
    await keyboard.press("i")
    await page.locator("#message-box:focus").waitFor()
    await keyboard.type("Write a note")
    await keyboard.press("Enter")
    await page.locator("button.reject:focus").waitFor()
    await keyboard.press("e")
    await page.locator(".rule input:focus").waitFor()
    await keyboard.press("Escape")
    await page.locator("button.reject:focus").waitFor()
    await keyboard.press("y")
    await page.getByText("The file is written.").waitFor()
    expect(await project.read("notes.txt")).toBe("hello\nworld\n")
    await page.locator("#message-box:focus").waitFor()
    await keyboard.type("Continue")
    await keyboard.press("Enter")
    await page.getByText("Second answer.").waitFor()
    await keyboard.press("Escape")
    await keyboard.press("c")
    await page.getByText("What should the agent do?").waitFor()
    await keyboard.press("Alt+ArrowDown")
    await page.getByText("Second answer.").waitFor()
  })

  test("answers questions with options and with the user's own words", async () => {
    const { server, model } = await startPageServer([
      {
        calls: [
          {
            name: "question",
            arguments: {
              questions: [
                { question: "Which format?", options: [{ label: "JSON" }, { label: "YAML" }] },
                {
                  question: "Which checks?",
                  multiple: true,
                  options: [{ label: "Types" }, { label: "Lint" }],
                },
                { question: "Which name?" },
              ],
            },
          },
        ],
      },
      { text: "Thank you." },
    ])
    const { page } = await openLoggedIn(server.url)
    await startSession(page, "Ask me")
    await page.getByRole("radio", { name: "YAML" }).check()
    await page.getByRole("checkbox", { name: "Types" }).check()
    await page.getByRole("checkbox", { name: "Lint" }).check()
    await page.getByRole("textbox", { name: "Answer", exact: true }).fill("Cart")
    await page.getByRole("button", { name: "Answer" }).click()
    await page.getByText("Thank you.").waitFor()
    const result = String(model.requests.at(-1)?.body.messages.at(-1)?.content)
    for (const answer of ["YAML", "Types", "Lint", "Cart"]) expect(result).toContain(answer)
  })

  test("edits, moves and withdraws waiting messages, and stops the run", async () => {
    const { server, get } = await startPageServer([
      { text: "slow ".repeat(200), pieceSize: 5, pieceDelayMs: 50 },
    ])
    const { page } = await openLoggedIn(server.url)
    await startSession(page, "Start")
    await page.getByText("slow slow").waitFor()
    const queue = page.getByRole("region", { name: "Waiting messages" })
    for (const text of ["first", "second", "third"]) {
      await page.getByRole("textbox", { name: "Message", exact: true }).fill(text)
      await page.keyboard.press("Control+Enter")
      await queue.getByText(text).waitFor()
    }
    const row = (text: string) => queue.getByRole("listitem").filter({ hasText: text })
    const waiting = async () => {
      const { body } = await get(`/session/${new URL(page.url()).hash.slice(1)}/input`)
      return body.items.map(({ text, held }: { text: string; held?: true }) =>
        held ? `${text} (held)` : text,
      )
    }
    await row("second").getByRole("button", { name: "Move up" }).click()
    await expect.poll(waiting).toEqual(["second", "first", "third"])
    await row("third").getByRole("button", { name: "Withdraw" }).click()
    await expect.poll(waiting).toEqual(["second", "first"])
    await row("first").getByRole("button", { name: "Edit" }).click()
    await expect.poll(waiting).toEqual(["second", "first (held)"])
    await queue.getByRole("textbox").fill("changed")
    await page.keyboard.press("Enter")
    await expect.poll(waiting).toEqual(["second", "changed"])
    await page.getByRole("button", { name: "Stop" }).click()
    await page.getByText("The run was stopped. Send a message to continue.").waitFor()
    await queue.getByText("paused").waitFor()
  })

  test("finds sessions by their text and marks the words", async () => {
    const { server, post, session } = await startPageServer([
      { text: "## Answer\n\nThe **answer** in `list.ts` mentions pagination once." },
    ])
    const path = await session()
    await session()
    await post(`${path}/input`, { text: "hello" })
    await post(`${path}/wait`)
    const { page } = await openLoggedIn(server.url)
    await page.getByRole("searchbox").fill("pagination")
    await page.locator("mark").getByText("pagination").waitFor()
    expect(await page.locator(".session").count()).toBe(1)
    expect(await page.locator(".excerpt").textContent()).toMatch(/answer in list\.ts mentions pagination/)
  })

  test("undoes a turn after it has shown the files", async () => {
    const { server, project } = await startPageServer(writeFile, {
      engine: { permission: { edit: "allow" } },
    })
    const { page } = await openLoggedIn(server.url)
    await startSession(page, "Write a note")
    await page.getByText("The file is written.").waitFor()
    for (const [direction, text] of [
      ["Undo", undefined],
      ["Redo", "hello\nworld\n"],
    ] as const) {
      await page.getByRole("button", { name: "Session menu" }).click()
      await page.getByRole("menuitem", { name: direction }).click()
      await page.getByRole("dialog").getByText("notes.txt").waitFor()
      await page.getByRole("button", { name: direction, exact: true }).click()
      await page.getByText(`${direction === "Undo" ? "Undid" : "Redid"} the changes to 1 file.`).waitFor()
      expect(await project.read("notes.txt").catch(() => undefined)).toBe(text)
    }
  })

  test("offers no undo if no turn changed files", async () => {
    const { server } = await startPageServer([{ text: "Hello." }])
    const { page } = await openLoggedIn(server.url)
    await startSession(page, "Hi")
    await page.getByText("Hello.").waitFor()
    await page.getByRole("button", { name: "Session menu" }).click()
    await page.getByRole("menuitem", { name: "Undo" }).click()
    await page.getByText("No loaded turn can be undone.").waitFor()
    expect(await page.getByRole("button", { name: "Undo", exact: true }).isDisabled()).toBe(true)
  })

  test("names the files that prevent an undo, and restores the other files", async () => {
    const other = { name: "write", arguments: { filePath: "other.txt", content: "other\n" } }
    const script = writeFile.map((reply) =>
      reply.calls ? { ...reply, calls: [...reply.calls, other] } : reply,
    )
    const page = await undoChangedNote(script)
    const dialog = page.getByRole("dialog")
    const text = await dialog.getByRole("alert").textContent()
    expect(text).toMatch(
      /^Cannot undo the turn, so no file was restored\. .*notes\.txt: it has been changed/s,
    )
    expect(text).not.toContain("others")
    await page.getByRole("button", { name: "Restore the other files" }).click()
    await page.getByText("Undid the changes to 1 file. Left 1 file unchanged.").waitFor()
    await page.getByRole("button", { name: "Session menu" }).click()
    await page.getByRole("menuitem", { name: "Redo" }).click()
    await dialog.getByText("other.txt").waitFor()
    expect(await dialog.getByText("notes.txt").count()).toBe(0)
  })

  test("does not offer to restore other files if every file prevents the undo", async () => {
    const page = await undoChangedNote(writeFile)
    await page.getByRole("dialog").getByRole("alert").waitFor()
    expect(await page.getByRole("button", { name: "Undo", exact: true }).count()).toBe(1)
  })
})
