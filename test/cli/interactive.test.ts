import { mkdir, readFile, rm, writeFile } from "node:fs/promises"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { dirname, join } from "node:path"
import { setTimeout as delay } from "node:timers/promises"
import { describe, expect, onTestFinished, test } from "vitest"
import type { Script } from "../../src/testing/model-server.ts"
import { quietMs } from "../../src/tui/card-parts.ts"
import { createMachine, tackleCommand, until } from "./run-tackle.ts"
import { hasTmux, openTerminal } from "./terminal.ts"

/** Writes a file if the user asks for work, and otherwise repeats the text. */
const script: Script = ({ body: { messages } }) => {
  const last = messages.at(-1)
  const text = typeof last?.content === "string" ? last.content : JSON.stringify(last?.content)
  if (last?.role !== "user") return { text: "It is **done**." }
  if (text.includes("work"))
    return { calls: [{ name: "write", arguments: { filePath: "made.txt", content: "one\ntwo\n" } }] }
  if (text.includes("hang")) return { fault: "hang" }
  if (text.includes("long"))
    return { text: Array.from({ length: 40 }, (_, line) => `line ${line}\n\n`).join("") }
  return { text: `I heard: ${text}` }
}

describe.skipIf(!hasTmux)("the interactive terminal (needs tmux)", () => {
  test("answers a prompt, shows a request with its diff, and continues the session later", async () => {
    const machine = await createMachine({ script })
    const terminal = await openTerminal(machine)
    await terminal.tackle()
    await terminal.sees("test/m")
    await terminal.press("a draft")
    await terminal.sees(" a draft")
    await terminal.press("C-c")
    await terminal.sees("↑ restores the text. Press Ctrl+C again to quit.")
    await terminal.press("Up")
    await terminal.sees(/─\n a draft\s*\n─/)
    await terminal.press("C-u")
    await terminal.press("hello there", "Enter")
    await terminal.sees("I heard: hello there")
    await terminal.press("do some work", "Enter")
    expect(await terminal.sees("yes, once")).toMatch(/1 \+ one\n +2 \+ two/)
    await delay(quietMs * 1.5)
    await terminal.press("y")
    await terminal.sees("It is done.")
    expect(await machine.project.read("made.txt")).toBe("one\ntwo\n")
    await terminal.press("C-c", "C-c")
    const screen = await terminal.sees("[exit 0]")
    expect(screen).not.toContain("build · test/m")
    const [, id = ""] = /tackle -s (ses_\w+)/.exec(screen) ?? []
    await terminal.tackle("-s", id)
    expect(await terminal.sees("It is done.")).toContain("› hello there")
    await terminal.press("C-d")
    await terminal.sees("[exit 0]")
    expect(await terminal.broken()).toEqual([])
  })

  test("refuses a request with Escape, and interrupts a run with Escape", async () => {
    const machine = await createMachine({ script })
    const terminal = await openTerminal(machine)
    await terminal.tackle("do some work")
    await terminal.sees("yes, once")
    await delay(quietMs * 1.5)
    await terminal.press("Escape")
    await terminal.sees("⊘ write")
    await expect(machine.project.read("made.txt")).rejects.toThrow("ENOENT")
    await terminal.press("please hang", "Enter")
    await terminal.sees("working")
    await terminal.press("Escape")
    await terminal.sees("⊘ The run was interrupted.")
    await terminal.press("hello there", "Enter")
    // The mark stays in the conversation.
    await terminal.sees(/⊘ The run was interrupted\.\n\n› hello there\n\nI heard/)
  })

  test("restores the terminal after SIGTERM", async () => {
    const machine = await createMachine({ script })
    const terminal = await openTerminal(machine)
    await terminal.tackle("hello there")
    await terminal.sees("I heard: hello there")
    await terminal.press("pkill -TERM -P $$ is typed into the editor")
    await terminal.sees("is typed into the editor")
    await terminal.terminate()
    await terminal.sees("[exit 130]")
    expect(await terminal.cursorIsVisible()).toBe(true)
    await terminal.type("echo still $((40 + 2))")
    await terminal.sees("still 42")
  })

  test("returns to the shell with Ctrl+Z, and continues with fg below what the shell printed", async () => {
    const machine = await createMachine({ script })
    const terminal = await openTerminal(machine)
    await terminal.type(`${tackleCommand} 'hello there'`)
    await terminal.sees("I heard: hello there")
    await terminal.press("a draft", "C-z")
    await terminal.sees(/Stopped/i)
    await terminal.type("echo still $((40 + 2))")
    await terminal.sees("still 42")
    await terminal.type("fg")
    await terminal.sees(/still 42[\s\S]*I heard: hello there[\s\S]*─\n a draft/)
    await terminal.press("C-u")
    await terminal.press("hello again", "Enter")
    await terminal.sees("I heard: hello again")
    await terminal.press("C-l")
    await terminal.sees(/I heard: hello there[\s\S]*I heard: hello again/)
    await terminal.press("C-d")
    await terminal.sees("Continue this session")
  })

  test("redraws without duplicates after the terminal is resized", async () => {
    const machine = await createMachine({ script })
    const terminal = await openTerminal(machine)
    await terminal.tackle("a long text")
    await terminal.sees("line 39")
    await terminal.resize(40, 12)
    await terminal.resize(80, 24)
    await until("the lines are complete", async () => /line 38\s+line 39/.test(await terminal.screen()))
    await terminal.press("hello again", "Enter")
    const screen = await terminal.sees("I heard: hello again")
    expect(screen.match(/^I heard: hello again/gm)).toHaveLength(1)
  })

  test("switches to the alternate screen and back without drawing the conversation twice", async () => {
    const machine = await createMachine({ script })
    const terminal = await openTerminal(machine)
    await terminal.tackle("hello there")
    await terminal.sees("I heard: hello there")
    await terminal.press("/fullscreen", "Enter")
    await until("the alternate screen is active", terminal.isAlternate)
    // Until the screen is drawn, the terminal can turn Enter into a line break.
    await terminal.sees("build · test/m")
    await terminal.press("hello again", "Enter")
    await terminal.sees("I heard: hello again")
    await terminal.press("/fullscreen", "Enter")
    await until("the scrollback is active", async () => !(await terminal.isAlternate()))
    const screen = await terminal.sees("I heard: hello again")
    expect(screen.match(/^I heard: hello there/gm)).toHaveLength(1)
    await terminal.press("C-d")
    await terminal.sees("[exit 0]")
  })

  test("shows what tools and warnings write in the conversation, and the screen even if stderr is a file", async () => {
    const noisy = `export default {
      description: "Writes to the terminal.",
      args: {},
      async execute() {
        console.log("a tool wrote this")
        process.stderr.write("\\u001b[2J")
        return "quiet"
      },
    }`
    const machine = await createMachine({
      files: { ".tackle/tool/noisy.js": noisy },
      config: { permission: { "*": "allow" } },
      script: ({ body: { messages } }) =>
        messages.at(-1)?.role === "user"
          ? { calls: [{ name: "noisy", arguments: {} }] }
          : { text: "It ran." },
    })
    const terminal = await openTerminal(machine)
    await terminal.type(`${tackleCommand} --trust 'run the tool' 2>errors.txt`)
    const screen = await terminal.sees("It ran.")
    expect(screen).toContain("✓ noisy")
    expect(screen).toContain("! a tool wrote this\n")
    await terminal.press("x", "BSpace")
    expect(await terminal.screen()).toContain("! a tool wrote this\n")
    await terminal.press("C-d")
    await terminal.sees("Continue this session")
    expect(await machine.project.read("errors.txt")).toBe("")
  })

  test("shows the status line of the user's own command, and runs none of a project", async () => {
    const command = (name: string) => [
      process.execPath,
      "-e",
      `require("node:fs").writeFileSync("${name}", ""); let text = ""; process.stdin.on("data", (part) => { text += part }).on("end", () => { const data = JSON.parse(text); console.log("own: " + data.model + " " + data.session?.title + " " + (data.context.tokens > 0)) })`,
    ]
    const project = JSON.stringify({ status_line: command("of-project") })
    const machine = await createMachine({ script, files: { "tackle.json": project } })
    const config = join(machine.home, "config/tackle/tackle.json")
    await mkdir(dirname(config), { recursive: true })
    await writeFile(config, JSON.stringify({ status_line: command("of-user") }))
    const terminal = await openTerminal(machine)
    await terminal.tackle("--trust")
    await terminal.sees("own: test/m undefined false")
    expect(await terminal.screen()).toMatch(/status_line has no effect\s+in a project/)
    await terminal.press("hello there", "Enter")
    await terminal.sees("own: test/m hello there true")
    expect(await machine.project.read("of-user")).toBe("")
    await expect(machine.project.read("of-project")).rejects.toThrow("ENOENT")
  })

  test.each([
    { background: "#fdf6e3", color: "38;5;25" },
    { background: "#002b36", color: "94" },
  ])("uses colors that fit the background $background", async ({ background, color }) => {
    const machine = await createMachine({ script })
    const terminal = await openTerminal(machine)
    await terminal.setBackground(background)
    await terminal.tackle()
    await terminal.sees("test/m")
    await terminal.press("hello there", "Enter")
    await terminal.sees("I heard: hello there")
    await until("the prompt has its color", async () =>
      (await terminal.styled()).includes(`\u001b[${color}m› hello there`),
    )
  })

  test("appends lines with --plain", async () => {
    const machine = await createMachine({ script })
    const terminal = await openTerminal(machine)
    await terminal.tackle("--plain")
    await terminal.sees("Type a prompt")
    await terminal.type("hello there")
    await terminal.sees("I heard: hello there")
    await terminal.type("second prompt")
    await terminal.sees("I heard: second prompt")
    await terminal.press("C-d")
    expect((await terminal.sees("[exit 0]")).match(/continue with|Continue this session/g)).toHaveLength(1)
    // Lines that were typed before the program reads them are also prompts.
    await terminal.tackle("--plain")
    for (const line of ["third", "fourth", "fifth"]) await terminal.type(line)
    for (const line of ["third", "fourth", "fifth"]) await terminal.sees(`› ${line}`)
    await terminal.sees("I heard: fifth")
    await terminal.press("C-d")
    await terminal.sees("Continue this session")
    await terminal.sees("[exit 0]")
  })

  test("interrupts the run at the first Ctrl+C and leaves at the second with --plain", async () => {
    const machine = await createMachine({ script })
    const terminal = await openTerminal(machine)
    await terminal.tackle("--plain")
    await terminal.sees("Type a prompt")
    await terminal.type("please hang")
    await terminal.sees("› please hang")
    await until("the model is called", () => machine.server.requests.length === 1)
    await terminal.press("C-c")
    await terminal.sees("Press Ctrl+C again to quit.")
    await terminal.sees(/interrupted/i)
    await terminal.type("hello there")
    await terminal.sees("I heard: hello there")
    await terminal.type("do some work")
    await terminal.sees("Press a letter or digit.")
    await terminal.press("C-c")
    const screen = await terminal.sees(/✗ write made\.txt[\s\S]*interrupted/)
    expect(screen.match(/^Allow this\?/gm)).toHaveLength(2)
    expect(screen).not.toContain("[exit")
    await terminal.type("hello again")
    await terminal.sees(/I heard: hello again[\s\S]*done/)
    await terminal.press("C-c")
    await terminal.sees("Continue this session")
    await terminal.sees("[exit 0]")
  })

  test("asks questions as numbered lines with --plain", async () => {
    const options = [{ label: "Red", description: "warm" }, { label: "Blue" }]
    const questions = [
      { question: "Which color?", header: "Color", options },
      { question: "Which colors?", header: "Colors", options, multiple: true },
    ]
    const answers: string[] = []
    const machine = await createMachine({
      script: ({ body: { messages } }) => {
        const last = messages.at(-1)
        if (last?.role === "user") return { calls: [{ name: "question", arguments: { questions } }] }
        answers.push(JSON.stringify(last?.content))
        return { text: "Thank you." }
      },
    })
    const terminal = await openTerminal(machine)
    await terminal.tackle("--plain", "ask me")
    await terminal.sees(/Color: Which color\?\n {2}1 {2}Red \(warm\)\n {2}2 {2}Blue\n {2}3 {2}something else/)
    await terminal.type("4")
    await terminal.sees('"4" is not a number from 1 to 3.')
    await terminal.type("3")
    await terminal.sees("Color: Which color?\n  1")
    await terminal.type("Green please")
    await terminal.sees("Colors: Which colors?")
    await terminal.type("2, 1")
    const screen = await terminal.sees("Thank you.")
    expect(screen).not.toMatch(/[◆│└]/)
    expect(answers.join()).toMatch(/Green please[\s\S]*Blue[\s\S]*Red/)
    await terminal.type("ask me")
    await terminal.sees(/Thank you[\s\S]*An empty line dismisses the question/)
    await terminal.press("Enter")
    await terminal.sees(/Thank you[\s\S]*Thank you/)
    await terminal.press("C-d")
    await terminal.sees("[exit 0]")
  })

  test("asks for a model at the first start, and saves the key and the choice", async () => {
    const requests: string[] = []
    const provider = createServer((request, response) => {
      requests.push(`${request.url} ${request.headers["x-api-key"]}`)
      const isValid = request.headers["x-api-key"] === "right-key"
      response.writeHead(isValid ? 200 : 401, { "content-type": "application/json" })
      response.end(isValid ? JSON.stringify({ data: [{ id: "claude-b" }, { id: "claude-a" }] }) : "{}")
    })
    await new Promise<void>((listening) => provider.listen(0, "127.0.0.1", listening))
    onTestFinished(() => void provider.close())
    const { port } = provider.address() as AddressInfo
    const machine = await createMachine({ config: null })
    const terminal = await openTerminal(machine, { ANTHROPIC_BASE_URL: `http://127.0.0.1:${port}/v1` })
    await terminal.tackle()
    await terminal.sees("Which model should Tackle use?")
    await terminal.press("Down", "Enter")
    await terminal.sees("API key for Anthropic")
    await terminal.press("wrong-key", "Enter")
    await terminal.sees("Anthropic does not accept the key.")
    await terminal.press("right-key", "Enter")
    await terminal.sees("claude-a")
    await terminal.press("claude-b", "Enter")
    await terminal.sees("anthropic/claude-b")
    await terminal.press("C-d")
    await terminal.sees("[exit 0]")
    const config = await readFile(join(machine.home, "config/tackle/tackle.json"), "utf8")
    expect(JSON.parse(config)).toEqual({ model: "anthropic/claude-b" })
    expect(JSON.parse(await readFile(join(machine.data, "auth.json"), "utf8"))).toEqual({
      anthropic: { type: "api", key: "right-key" },
    })
    expect(requests).toEqual(["/v1/models?limit=1000 wrong-key", "/v1/models?limit=1000 right-key"])
    await rm(join(machine.home, "config/tackle/tackle.json"))
    await terminal.tackle()
    await terminal.sees("Which model should Tackle use?")
    await terminal.press("Down")
    await terminal.sees("Anthropic (signed in)")
    await terminal.press("C-c")
  })

  test("asks for a model despite an invalid auth file, and reports the file if a key is needed", async () => {
    const machine = await createMachine({ config: null })
    const auth = join(machine.data, "auth.json")
    await mkdir(machine.data, { recursive: true })
    await writeFile(auth, JSON.stringify({ openai: { type: "oauth", access: "a" } }), { mode: 0o600 })
    const terminal = await openTerminal(machine)
    await terminal.tackle()
    await terminal.sees("OpenAI (needs an API key)")
    await terminal.press("C-c")
    await terminal.sees("[exit ")
    await writeFile(auth, "{")
    await terminal.tackle()
    await terminal.sees("OpenAI (needs an API key)")
    await terminal.press("Enter")
    await terminal.sees("is not a valid auth file")
  })

  test.each([
    { columns: 80, rows: 24 },
    { columns: 40, rows: 12 },
  ])("fits the question for the first model on $columns by $rows", async ({ columns, rows }) => {
    const machine = await createMachine({ config: null })
    const terminal = await openTerminal(machine)
    await terminal.resize(columns, rows)
    await terminal.tackle()
    const screen = await terminal.sees(/Which model should[\s\S]*└/)
    await expect(`${screen.slice(screen.indexOf("◆"))}\n`).toMatchFileSnapshot(
      `../tui/golden/model-question-${columns}x${rows}.txt`,
    )
  })

  test("says how to connect a model later if none is chosen at the first start", async () => {
    const machine = await createMachine({ config: null })
    const terminal = await openTerminal(machine)
    await terminal.tackle()
    await terminal.sees("then start Tackle again.")
    await terminal.press("Up", "Enter")
    await terminal.sees("To connect a model, quit and start tackle again.")
    await terminal.sees("build · tackle/offline")
    await terminal.press("C-d")
    await terminal.sees("[exit 0]")
    await terminal.tackle()
    await terminal.sees("Which model should Tackle use?")
  })

  test("reports a misspelled command instead of sending it as a prompt", async () => {
    const machine = await createMachine({ script })
    const terminal = await openTerminal(machine)
    await terminal.tackle("sesion")
    await terminal.sees("unknown command")
    await terminal.sees("[exit 2]")
    expect(machine.server.requests).toHaveLength(0)
  })
})
