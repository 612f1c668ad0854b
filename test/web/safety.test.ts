import { describe, expect, test } from "vitest"
import { createMachine, until } from "../cli/run-tackle.ts"
import {
  closeBrowserAfterwards,
  hasNoBrowser,
  openLoggedIn,
  openWindow,
  startPageServer,
  startSession,
} from "./open-page.ts"

closeBrowserAfterwards()

const hostile = [
  "<script>window.attacked = 1</script>",
  "<img src=x onerror='window.attacked = 2'>",
  "![pixel](https://attacker.example/pixel.png)",
  "![data](data:text/html,<script>window.attacked=3</script>)",
  "[click](javascript:window.attacked=4)",
  "[click](data:text/html;base64,PHNjcmlwdD4=)",
  "<iframe src='https://attacker.example'></iframe>",
  "<form action='https://attacker.example'><button>x</button></form>",
  "<style>body { background: url(https://attacker.example/style) }</style>",
  "<svg onload='window.attacked = 5'><use href='https://attacker.example/a.svg#a'></use></svg>",
  "<a href='https://example.com' onclick='window.attacked = 6' style='position:fixed'>html</a>",
  "[good link](https://example.com/page)",
  "```html\n<img src=x onerror='window.attacked = 7'>\n```",
  '`<b onmouseover="window.attacked=8">`',
].join("\n\n")

describe.skipIf(hasNoBrowser)("the page", () => {
  test("shows hostile Markdown and terminal escapes as text", async () => {
    const command =
      "printf '\\033]8;;https://attacker.example\\033\\\\linked\\033]8;;\\033\\\\ \\033[31mred\\033[0m \\033[2J<img src=x onerror=window.attacked=9> \\033]0;title\\007end'"
    const { server } = await startPageServer(
      [
        {
          text: hostile,
          reasoning: hostile,
          calls: [{ name: "bash", arguments: { command, description: "<b>x</b>" } }],
        },
        { text: "All done." },
      ],
      { engine: { permission: { "*": "allow" } } },
    )
    const { page, foreign, problems } = await openLoggedIn(server.url)
    await startSession(page, "<img src=x onerror='window.attacked = 10'>")
    await page.getByText("All done.").waitFor()
    await page.getByRole("button", { name: /Thought/ }).click()
    await page.getByRole("button", { name: /bash/ }).click()
    const output = await page.getByRole("region", { name: "Output of bash" }).innerText()
    expect(output).toContain("linked red <img src=x onerror=window.attacked=9> end")
    expect(await page.evaluate("window.attacked")).toBeUndefined()
    const column = page.locator(".column")
    expect(await column.locator("script, iframe, form, style, img, [onclick], [onerror]").count()).toBe(0)
    const links = await page.evaluate<string[]>(
      "[...document.querySelectorAll('.column a')].map((link) => link.outerHTML)",
    )
    expect(new Set(links)).toEqual(
      new Set([
        '<a href="https://attacker.example/pixel.png" target="_blank" rel="noopener noreferrer">image: pixel</a>',
        '<a target="_blank" rel="noopener noreferrer">image: data</a>',
        '<a target="_blank" rel="noopener noreferrer">click</a>',
        '<a href="https://example.com/page" target="_blank" rel="noopener noreferrer">good link</a>',
      ]),
    )
    expect(foreign).toEqual([])
    expect(problems).toEqual([])
  })

  test("continues after the server was killed while the agent answered", async () => {
    const machine = await createMachine({
      script: [
        { text: "early words then silence", pieceSize: 6, pieceDelayMs: 5, fault: "hang-mid" },
        { text: "The second answer." },
        { text: "The third answer." },
      ],
    })
    const start = async (port: string) => {
      const running = machine.start(["web", "--no-open", "--port", port])
      await until("the server prints its link", () => running.stdout.includes("#ticket="))
      return { running, address: /http:\S+#ticket=\S+/.exec(running.stdout)?.[0] ?? "" }
    }
    const first = await start("0")
    const { page } = await openWindow()
    await page.goto(first.address)
    await page.getByText("What should the agent do?").waitFor()
    await startSession(page, "Answer")
    await page.getByText("early words").waitFor()
    await page.getByRole("textbox", { name: "Message", exact: true }).fill("next")
    await page.keyboard.press("Control+Enter")
    await page.getByRole("region", { name: "Waiting messages" }).getByText("next").waitFor()
    first.running.child.kill("SIGKILL")
    await first.running.ended
    await page.getByText("The server does not respond.").waitFor()
    const second = await start(new URL(first.address).port)
    await page.getByText("The second answer.").waitFor()
    await page.getByRole("region", { name: "Waiting messages" }).waitFor({ state: "detached" })
    await page.getByRole("textbox", { name: "Message", exact: true }).fill("third")
    await page.keyboard.press("Enter")
    await page.getByText("The third answer.").waitFor()
    second.running.child.kill("SIGTERM")
    await second.running.ended
  })
})
