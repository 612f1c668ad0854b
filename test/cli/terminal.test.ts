import { spawnSync } from "node:child_process"
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { readFile } from "node:fs/promises"
import { createServer } from "node:http"
import { join } from "node:path"
import { describe, expect, onTestFinished, test } from "vitest"
import { createTackle } from "../../src/engine/create-tackle.ts"
import { type ModelRequestBody, startModelServer } from "../../src/testing/model-server.ts"
import type { Reply } from "../../src/testing/reply.ts"
import { createMachine, tackleCommand, until } from "./run-tackle.ts"
import { hasTmux, openTerminal } from "./terminal.ts"

const bash = (command: string) => ({ name: "bash", arguments: { command, description: "Do it" } })

/** Returns the reply for the step, by the number of call results since the user's last message. */
function atStep({ messages }: ModelRequestBody, replies: Reply[]): Reply {
  const asked = messages.findLastIndex(({ role }) => role === "user")
  return (
    replies[messages.slice(asked).filter(({ role }) => role === "assistant").length] ?? { text: "All done." }
  )
}

/** Returns the ids of the processes with the text among their arguments. */
function processesWith(text: string): string[] {
  const ids = readdirSync("/proc").filter((name) => /^\d+$/.test(name))
  return ids.filter((id) => {
    try {
      return readFileSync(`/proc/${id}/cmdline`, "utf8").includes(text)
    } catch {
      return false
    }
  })
}

/** False where the system has no such program. */
const hasSetsid = spawnSync("setsid", ["--version"]).status === 0

describe.skipIf(!hasTmux)("in a terminal (needs tmux)", () => {
  test("shows the requested command in full and accepts every answer", async () => {
    const command = "factor 3 > made.txt; factor 4 6"
    const machine = await createMachine({
      files: { "notes.txt": "one\ntwo\nthree\n" },
      script: ({ body }) =>
        atStep(body, [
          {
            text: "I look at the notes before I change them.",
            calls: [{ name: "read", arguments: { filePath: "notes.txt" } }],
          },
          {
            calls: [
              { name: "edit", arguments: { filePath: "notes.txt", oldString: "two", newString: "zwei" } },
            ],
          },
          { calls: [bash(command)] },
          { calls: [bash("sleep 2.5"), bash("factor 7 9")] },
          { calls: [bash(`git push origin ${"branch-with-a-name ".repeat(6)}`)] },
        ]),
    })
    const terminal = await openTerminal(machine)
    const choices =
      /1 y {2}yes, once\n[\s\S]*2 s {2}always, in this session\n[\s\S]*3 p {2}always, in this project[\s\S]*❯ 4 n {2}no\n[\s\S]*5 e {2}no, and give a reason/
    await terminal.tackle("run", "change the notes")
    const edit = await terminal.sees(choices)
    expect(edit).toMatch(/\? edit\n {4}notes\.txt\n/)
    expect(edit).toMatch(/ {3}one\n {2}-two\n {2}\+zwei\n {3}three\n/)
    expect(edit).toContain("always allows edit")
    await terminal.press("y")

    const shell = await terminal.sees(/\? bash[\s\S]*give a reason/)
    expect(shell).toContain(`? bash\n    ${command}\n`)
    // The redirection writes a file, which is part of the same question.
    expect(shell).toContain("\n  edit: made.txt\n")
    expect(shell).toMatch(/always allows bash: factor \*, edit: made\.txt/)
    await terminal.press("s")

    // A command that "always" allowed is not asked for again; a slow call is visible only while it runs.
    await terminal.sees(/[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏] (2 calls: )?bash sleep 2\.5.* \d s/)

    await terminal.sees(/\? bash\n {4}git push[\s\S]*give a reason/)
    await terminal.press("Down", "Enter")
    await terminal.sees("What should the agent do instead?")
    await terminal.press("-l", "open a pull request")
    await terminal.press("Enter")
    const end = await terminal.sees("[exit 3]")
    expect(end).not.toMatch(/[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]/)
    expect(end).toMatch(/^✓ read notes\.txt · 3 lines$/m)
    expect(end).toMatch(/^✓ bash sleep 2\.5 · exit 0 · [\d.]+ s$/m)
    expect(end).toMatch(/^✓ bash factor 7 9 · exit 0/m)
    expect(end).toMatch(/^⊘ bash git push origin branch-with.*…$/m)
    expect(end).toContain("said: open a pull request")
    expect(end).toMatch(
      /^All done\.\n\ndone · .* · 1 refused\ncontinue with: tackle run -s ses_\w+ "…"\n\[exit 3\]/m,
    )
    expect(await machine.project.read("notes.txt")).toBe("one\nzwei\nthree\n")
    const result = machine.server.requests.at(-1)?.body.messages.at(-1)
    expect(result).toMatchObject({ role: "tool", content: expect.stringContaining("open a pull request") })
    // Tackle's own lines fit; only the requested command, shown in full, may be longer.
    expect((await terminal.broken()).filter((line) => /^[✓✗⊘!·↻]|^done/.test(line))).toEqual([])
  })

  test("names the deciding rule in the request, with file and line, or the default", async () => {
    const machine = await createMachine({
      files: { "tackle.json": '{\n  "permission": {\n    "bash": { "git *": "ask" }\n  }\n}\n' },
      script: ({ body }) => atStep(body, [{ calls: [bash("git push")] }, { calls: [bash("factor 4")] }]),
    })
    const terminal = await openTerminal(machine)
    await terminal.tackle("run", "--trust", "push")
    const push = await terminal.sees("no, and give a reason")
    expect(push).toContain('asks because: tackle.json:3 asks for "bash: git *"')
    await terminal.press("n")
    await terminal.sees(
      /factor 4\n[\s\S]*asks because: no rule allows it, and the default is to ask\n[\s\S]*give a reason/,
    )
    await terminal.press("n")
    await terminal.sees("[exit 3]")
  })

  test("shows all text of a slow stream, with nothing drawn over it", async () => {
    const words = Array.from({ length: 40 }, (_, index) => `word${index}`).join(" ")
    const machine = await createMachine({
      script: () => ({ text: words, pieceSize: 12, pieceDelayMs: 100, delayMs: 2_500 }),
    })
    const terminal = await openTerminal(machine)
    await terminal.tackle("run", "say it")
    await terminal.sees(/[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏] waiting for the model \d s/)
    const end = await terminal.sees("[exit 0]")
    expect(end.replaceAll("\n", " ")).toContain(words)
    expect(end).not.toMatch(/[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]/)
  })

  test("shows the last output of a running command, and then Markdown as it arrives", async () => {
    const table = "# Result\n\nThe **sum** is:\n\n| name | sum |\n|---|---:|\n| cart | 12 |\n\nEnd"
    const machine = await createMachine({
      script: ({ body }) =>
        atStep(body, [
          { calls: [bash("for i in 1 2 3 4 5 6 7; do echo step $i; done; sleep 1; exit 3")] },
          { text: table, pieceSize: 5, pieceDelayMs: 60 },
        ]),
    })
    const terminal = await openTerminal(machine)
    await terminal.tackle("run", "--auto", "sum")
    const working = await terminal.sees(
      /[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏] bash for i in .*\n {2}step 3\n(?: {2}step \d\n){3} {2}step 7/,
    )
    expect(working).not.toContain("step 2\n")
    // The first rows of the table are shown before it is complete.
    await terminal.sees(/The sum is:\n\n(?!.*End)/)
    const end = await terminal.sees("[exit 0]")
    expect(end).toMatch(
      /\n\n! bash for i in .* · exit 3 · .*\n {2}step 1\n(?: {2}step \d\n){6}\nResult\n\nThe sum is:\n\n┌/,
    )
    expect(end).toMatch(/│ cart │ 12 +│\n└.*┘\n\nEnd\n\ndone · /)
    expect(end.match(/The sum is/g)).toHaveLength(1)
    expect(end).not.toMatch(/[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]/)
  })

  test("shows that the model is silent in the middle of its answer", async () => {
    const machine = await createMachine({
      script: () => ({ text: "one two", pieceSize: 4, pieceDelayMs: 2_000 }),
    })
    const terminal = await openTerminal(machine)
    await terminal.tackle("run", "say it")
    await terminal.sees(/one\n[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏] waiting for the rest of the answer \d s/)
    expect(await terminal.sees("[exit 0]")).toMatch(/\n\none two\n\ndone/)
  })

  test("clears the line of a requested command at Ctrl+C", async () => {
    const machine = await createMachine({
      script: ({ body }) => atStep(body, [{ calls: [bash("factor 6 >/dev/null; sleep 300")] }]),
    })
    const terminal = await openTerminal(machine)
    await terminal.tackle("run", "wait")
    await terminal.sees("no, and give a reason")
    await terminal.press("-l", "yes")
    await terminal.press("Enter")
    await terminal.sees(/[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏] bash factor 6 >\/dev\/null; sleep 300 \d s/)
    await terminal.press("C-c")
    const end = await terminal.sees("[exit 130]")
    expect(end).toMatch(/yes, once\n✗ bash factor 6 >\/dev\/null; sleep 300\n/)
  })

  test("ends the run with 130 at Ctrl+C and restores the terminal, at a question and in a command", async () => {
    const machine = await createMachine({
      script: ({ body }) => atStep(body, [{ calls: [bash("echo $$ > pid; sleep 300")] }]),
      // The id of a process means nothing outside of a sandbox.
      config: { sandbox: "off" },
    })
    const terminal = await openTerminal(machine)
    await terminal.tackle("run", "wait")
    await terminal.sees("no, and give a reason")
    await terminal.press("C-c")
    const asked = await terminal.sees("[exit 130]")
    expect(asked).toMatch(/^interrupted · /m)
    expect(existsSync(machine.project.path("pid"))).toBe(false)
    expect(await terminal.cursorIsVisible()).toBe(true)

    await terminal.tackle("run", "--auto", "wait")
    const pid = () => readFile(machine.project.path("pid"), "utf8").catch(() => "")
    await until("the command runs", async () => /^\d+\n$/.test(await pid()))
    await terminal.press("C-c")
    await terminal.sees("[exit 130]")
    expect(() => process.kill(Number(pid), 0)).toThrow()
    await terminal.type("stty -a")
    expect(await terminal.sees("icanon")).toMatch(/(^|\s)echo\s/)
    expect(await terminal.cursorIsVisible()).toBe(true)
  })

  test('narrows, lists and revokes an "always" answer, and first shows a long diff in full', async () => {
    const content = Array.from({ length: 90 }, (_, line) => `line ${line}`).join("\n")
    const machine = await createMachine({
      script: ({ body }) =>
        atStep(body, [
          { calls: [bash("factor 1 3")] },
          { calls: [bash("factor 1 4")] },
          { calls: [{ name: "write", arguments: { filePath: "long.txt", content } }] },
        ]),
    })
    const terminal = await openTerminal(machine)
    await terminal.tackle("run", "go")
    await terminal.sees("always, with a narrower rule")
    await terminal.press("r")
    await terminal.sees("Allow bash (leave empty to skip this rule)")
    // A wider rule than the offered one is not accepted.
    await terminal.press("C-u")
    await terminal.press("-l", "s *")
    await terminal.press("Enter")
    await terminal.sees("The rule must not allow more than factor *")
    await terminal.press("C-u")
    await terminal.press("-l", "factor 1 *")
    await terminal.press("Enter")
    await terminal.sees("For how long?")
    await terminal.press("p")

    // The second command needs no answer.
    const cut = await terminal.sees(/… \d+ more lines[\s\S]*give a reason\n[\s\S]*6 a {2}show everything/)
    expect(cut).not.toContain("always, in this session")
    await terminal.press("a")
    expect(await terminal.sees(/\+line 89[\s\S]*always, in this session[\s\S]*give a reason/)).toContain(
      "always allows edit: *",
    )
    await terminal.press("y")
    await terminal.sees("[exit 0]")

    const list = await machine.run(["permission", "list"])
    expect(list.stdout).toMatch(/^gra_\w+ {2}bash: factor 1 \* {2}\(project, [\d-]+\)\n$/)
    const [id = ""] = list.stdout.split(" ")
    expect((await machine.run(["permission", "revoke", id])).code).toBe(0)
    expect((await machine.run(["permission", "check", "bash", "factor 1 4"])).code).toBe(10)
  })

  test("removes a question when the run is ended from outside, and treats Escape as no", async () => {
    const machine = await createMachine({
      script: ({ body }) => atStep(body, [{ calls: [bash("touch made")] }]),
    })
    const terminal = await openTerminal(machine)
    await terminal.tackle("run", "--timeout", "3", "go")
    await terminal.sees("no, and give a reason")
    await terminal.sees("[exit 4]")
    expect(await terminal.cursorIsVisible()).toBe(true)
    await terminal.tackle("run", "go")
    await terminal.sees("no, and give a reason")
    await terminal.press("Escape")
    expect(await terminal.sees("[exit 3]")).toMatch(/^Allow this\? no\n[\s\S]*All done\./m)
    expect(existsSync(machine.project.path("made"))).toBe(false)
  })

  test("removes a question that another process has answered", async () => {
    const machine = await createMachine({
      script: ({ body }) => atStep(body, [{ calls: [bash("touch made")] }]),
    })
    const terminal = await openTerminal(machine)
    await terminal.tackle("run", "go")
    await terminal.sees("no, and give a reason")
    await using other = await createTackle({
      directory: machine.project.directory,
      dataDirectory: machine.data,
      model: "tackle/offline",
    }).then((tackle) => ({ tackle, [Symbol.asyncDispose]: tackle.close }))
    const [request] = await other.tackle.requests()
    expect(request).toMatchObject({ type: "permission", permission: "bash" })
    expect(await other.tackle.reply(request?.id ?? "", { reply: "once" })).toBe("applied")
    expect(await terminal.sees("[exit 0]")).toMatch(/answered in another process[\s\S]*All done\./)
    expect(existsSync(machine.project.path("made"))).toBe(true)
    expect(await terminal.cursorIsVisible()).toBe(true)
  })

  test.each([
    ["n"],
    ["N"],
    ["4"],
    ["n", "Enter"],
    ["no", "Enter"],
    ["NO", "Enter"],
    ["Enter"],
    ["nope", "Enter", "Escape"],
    ["ok", "Enter", "Enter"],
    ["stop", "Enter", "C-d"],
    ["skip", "C-u", "Enter", "Enter"],
    ["k", "j", "h", "l", "Space", "Tab", "Escape"],
    ["y", "BSpace", "Enter"],
    ["M-y", "Enter"],
    ["7", "0", "Escape"],
  ])("refuses the request for %j %j %j", async (...keys) => {
    const machine = await createMachine({
      script: ({ body }) => atStep(body, [{ calls: [bash("touch made")] }]),
    })
    const terminal = await openTerminal(machine)
    await terminal.tackle("run", "go")
    await terminal.sees("no, and give a reason")
    for (const key of keys) await terminal.press(key)
    expect(await terminal.sees("[exit 3]")).toMatch(/^Allow this\? no\n/m)
    expect(existsSync(machine.project.path("made"))).toBe(false)
  })

  test("ignores text typed before the request and pasted text, and counts waiting requests", async () => {
    const asked = Promise.withResolvers<void>()
    const machine = await createMachine({
      script: async ({ body }) => {
        await asked.promise
        return atStep(body, [{ calls: [bash("factor 11"), bash("factor 13")] }])
      },
    })
    const terminal = await openTerminal(machine)
    await terminal.tackle("run", "go")
    await until("the question to the model", () => machine.server.requests.length > 0)
    await terminal.type("y")
    asked.resolve()
    await terminal.sees(/factor 11[\s\S]*Allow this\? \(1 more waiting\)[\s\S]*❯ 4 n {2}no/)
    await terminal.paste("y\n")
    await terminal.press("no", "Enter")
    await terminal.sees(/factor 13[\s\S]*Allow this\?\n[\s\S]*❯ 4 n {2}no/)
    await terminal.press("yes", "Enter")
    const end = await terminal.sees("[exit 3]")
    expect(end).toMatch(/^⊘ bash factor 11$/m)
    expect(end).toMatch(/^✓ bash factor 13/m)
  })

  test("trusts a project's files at the terminal", async () => {
    const machine = await createMachine({ files: { "tackle.json": '{ "shell": "/bin/sh" }' } })
    const terminal = await openTerminal(machine)
    await terminal.tackle("trust")
    expect(await terminal.sees("Trust tackle.json?")).toContain('shell = "/bin/sh"')
    await terminal.press("Enter")
    await terminal.sees("[exit 2]")
    await terminal.tackle("trust")
    await terminal.sees("Trust tackle.json?")
    await terminal.press("C-c")
    await terminal.sees("[exit 130]")
    await terminal.tackle("trust")
    await terminal.sees("Trust tackle.json?")
    await terminal.press("Up", "Enter")
    expect(await terminal.sees("[exit 0]")).toContain("Trusted tackle.json.")
  })

  test("offers a model server on this machine once, and remembers the choice", async ({ skip }) => {
    const usual = createServer()
    const free = await new Promise<boolean>((resolve) => {
      usual.once("error", () => resolve(false))
      usual.listen(11_434, "127.0.0.1", () => resolve(true))
    })
    if (!free) return skip("port 11434 is taken")
    // The scripted model answers on Ollama's port.
    const model = await startModelServer({ script: () => ({ text: "Local answer." }), models: ["tiny"] })
    onTestFinished(async () => {
      usual.closeAllConnections()
      usual.close()
      await model.close()
    })
    usual.on("request", async (incoming, response) => {
      const chunks: Buffer[] = []
      for await (const chunk of incoming) chunks.push(chunk)
      const { method = "GET", url = "" } = incoming
      const body = method === "GET" ? {} : { body: Buffer.concat(chunks) }
      const answer = await fetch(`http://127.0.0.1:${model.port}${url}`, { method, ...body })
      response.writeHead(answer.status, { "content-type": String(answer.headers.get("content-type")) })
      response.end(Buffer.from(await answer.arrayBuffer()))
    })

    const machine = await createMachine({ config: null })
    const terminal = await openTerminal(machine)
    await terminal.tackle("run", "hello")
    expect(await terminal.sees("do not ask again")).toMatch(
      /Ollama is\s.*running\s.*at\s.*http:\/\/127\.0\.0\.1:11434\/v1/s,
    )
    await terminal.press("C-c")
    await terminal.sees("[exit 130]")
    await terminal.tackle("run", "hello")
    await terminal.sees("tiny")
    await terminal.press("Enter")
    expect(await terminal.sees("[exit 0]")).toContain("Local answer.")
    expect(JSON.parse(await readFile(join(machine.home, "config/tackle/tackle.json"), "utf8"))).toMatchObject(
      {
        model: "ollama/tiny",
      },
    )
    await terminal.tackle("run", "hello")
    expect(await terminal.sees("[exit 0]")).not.toContain("No model is configured")

    const other = await createMachine({ config: null })
    const declining = await openTerminal(other)
    // Escape declines the server only once.
    for (const keys of [["Escape"], ["Up", "Enter"], []]) {
      await declining.tackle("run", "list the files")
      if (keys.length > 0) {
        await declining.sees("do not ask again")
        await declining.press(...keys)
      }
      expect(await declining.sees("[exit 0]")).toContain("tackle/offline")
    }
  })

  test("wraps the list of what trust enables between words", async () => {
    const command = ["npx", "-y", "@scope/some-long-server-name", "--with", "arguments", "and", "more"]
    const config = { mcp: { tickets: { type: "local", command } } }
    const machine = await createMachine({ files: { "tackle.json": JSON.stringify(config) } })
    const terminal = await openTerminal(machine)
    await terminal.tackle("trust", "--list")
    expect(await terminal.sees("[exit 0]")).toContain(
      '"--with",\n    "arguments", "and", "more"]   (a program',
    )
    expect(await terminal.broken()).toEqual([])
  })

  test("shows with tool list --all the full reason why a tool is not offered, one below the other", async () => {
    const terminal = await openTerminal(await createMachine())
    await terminal.tackle("tool", "list", "--all")
    const screen = await terminal.sees("[exit 0]")
    expect(screen).toMatch(/^websearch {4}unavailable: .*,\n {13}\S.* or TACKLE_ENABLE_EXA$/m)
    expect(screen).toMatch(/^tool_search {2}unavailable: .*\n {13}.*tool_search\.maxBytes sets$/m)
    expect(await terminal.broken()).toEqual([])
  })

  test("wraps messages in session show between words behind the prompt mark, and not in a pipe", async () => {
    const answer = `${"An answer of a considerable length. ".repeat(4)}\n\n- ${"item ".repeat(20)}`.trim()
    const prompt = "a question with ".repeat(8).trim()
    const machine = await createMachine({ script: [{ text: answer }] })
    await machine.run(["run", prompt])
    const terminal = await openTerminal(machine)
    await terminal.tackle("session", "show")
    const screen = await terminal.sees("[exit 0]")
    expect(screen).toMatch(/^> a question .* a question$\n^> {3}with a question /m)
    expect(screen).toMatch(/ An$\n^answer of a considerable /m)
    expect(await terminal.broken()).toEqual([])
    const { stdout } = await machine.run(["session", "show"])
    expect(stdout).toContain(`\n> ${prompt}\n\n${answer}\n`)
  })

  test("ends a run and its processes when its terminal is closed", async () => {
    const mark = `closed-${process.pid}`
    const machine = await createMachine({ script: () => ({ calls: [bash(`sleep 300; echo ${mark}`)] }) })
    const terminal = await openTerminal(machine)
    // It replaces the shell, which would otherwise receive the signal too.
    await terminal.type(`exec ${tackleCommand} run ${mark}`)
    await terminal.sees(/bash sleep 300.* \d s/)
    // The program that the shell starts has the text among its arguments, too.
    expect(processesWith(mark).length).toBeGreaterThan(1)
    await terminal.close()
    await until("the end of all of it", () => processesWith(mark).length === 0)
  })

  describe.skipIf(!hasSetsid)("a run in its own session (needs setsid)", () => {
    test("continues when the terminal is closed, survives its own output, and is stored completely", async () => {
      const machine = await createMachine({
        files: { "made.txt": "" },
        script: ({ body }) =>
          atStep(
            body,
            ["one", "two"].map((word) => ({ calls: [bash(`sleep 2; echo ${word} >> made.txt`)] })),
          ),
      })
      const made = join(machine.project.directory, "made.txt")
      const terminal = await openTerminal(machine)
      await terminal.type(`setsid ${tackleCommand} run --auto apart`)
      await terminal.sees(/bash sleep 2.* \d s/)
      await terminal.close()
      await until("the second call", async () => (await readFile(made, "utf8")) === "one\ntwo\n")
      await until("the answer", async () =>
        (await machine.run(["session", "show"])).stdout.includes("All done."),
      )
      expect((await machine.run(["session", "show"])).stdout).not.toContain("✗")
    })

    test("continues when the model answers after the terminal is closed", async () => {
      const closed = Promise.withResolvers<void>()
      const machine = await createMachine({
        script: async ({ body }) => {
          await closed.promise
          return atStep(body, [{ text: "It is late.", calls: [bash("factor 3 > made.txt")] }])
        },
      })
      const terminal = await openTerminal(machine)
      await terminal.type(`setsid ${tackleCommand} run --auto apart 2> notes.txt`)
      await until("the question to the model", () => machine.server.requests.length === 1)
      await terminal.close()
      closed.resolve()
      const notes = join(machine.project.directory, "notes.txt")
      await until("the end", async () =>
        (await readFile(notes, "utf8")).includes("continue with: tackle run"),
      )
      expect(await readFile(notes, "utf8")).not.toContain("EIO")
      expect((await machine.run(["session", "show"])).stdout).toMatch(/It is late\.[\s\S]*All done\./)
    })

    test("ends when the terminal is closed before the user has answered", async () => {
      const mark = `unanswered-${process.pid}`
      const machine = await createMachine({ script: () => ({ calls: [bash(`factor 3 > ${mark}`)] }) })
      const terminal = await openTerminal(machine)
      await terminal.type(`setsid ${tackleCommand} run ${mark}`)
      await terminal.sees("yes, once")
      await terminal.close()
      await until("the end of it", () => processesWith(mark).length === 0)
      expect(existsSync(join(machine.project.directory, mark))).toBe(false)
    })
  })

  test("reports what mcp serve waits for when it is started by hand", async () => {
    const terminal = await openTerminal(await createMachine())
    await terminal.tackle("mcp", "serve")
    await terminal.sees("this command speaks MCP on stdin and stdout")
    await terminal.press("C-d")
    await terminal.sees("[exit 0]")
  })
})
