import { mkdir, writeFile } from "node:fs/promises"
import { dirname, join } from "node:path"
import { describe, expect, test } from "vitest"
import { createMachine, until } from "./run-tackle.ts"
import { hasTmux, openTerminal } from "./terminal.ts"

describe.skipIf(!hasTmux)("the interactive terminal with --attach (needs tmux)", () => {
  test("shows the user's status line, the branch, and the output of `!` commands while they run", async () => {
    const machine = await createMachine({
      files: { ".git/HEAD": "ref: refs/heads/topic\n" },
      script: ({ body: { messages } }) => ({ text: `heard ${messages.at(-1)?.content}` }),
      config: { sandbox: "off", permission: { bash: "allow" } },
    })
    const served = machine.start(["serve", "--port", "0", "--format", "json"], { timeoutMs: 60_000 })
    await until("the server listens", () => served.stdout.includes("\n"))
    const { url } = JSON.parse(served.stdout)
    const terminal = await openTerminal(machine)
    await terminal.tackle("--attach", String(url), "--model", "test/m")
    await terminal.sees("test/m · no sandbox · topic")
    await terminal.type("/mcp")
    await terminal.sees("Add one with tackle mcp add on the Tackle")
    await terminal.type("!mkfifo fifo")
    await terminal.sees("✓ $ mkfifo")
    await terminal.type("!echo begun; read line < fifo; echo never")
    await terminal.sees(/● \$ echo begun[^\n]*\n {2}begun\n/)
    await terminal.press("C-c")
    await terminal.sees(/✗ \$ echo begun[^\n]*\n {2}begun\n {2}\[stopped\]/)
    await terminal.press("C-d")
    await terminal.sees("[exit 0]")

    const command = `let text = ""; process.stdin.on("data", (part) => { text += part }).on("end", () => { const data = JSON.parse(text); console.log("own: " + data.model + " " + data.sandbox + " " + data.branch) })`
    const config = join(machine.home, "config/tackle/tackle.json")
    await mkdir(dirname(config), { recursive: true })
    await writeFile(config, JSON.stringify({ status_line: [process.execPath, "-e", command] }))
    await terminal.tackle("--attach", String(url), "--model", "test/m")
    await terminal.sees("own: test/m none topic")
    await terminal.type("hello")
    expect(await terminal.sees("heard hello")).toContain("own: test/m none topic")
    await terminal.press("C-d")
    expect(await terminal.sees("[exit 0]")).toContain(`tackle --attach ${url} -s ses_`)
  })
})
