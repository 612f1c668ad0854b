import { existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import type { ModelRequestBody, Script } from "../../src/testing/model-server.ts"
import type { Reply } from "../../src/testing/reply.ts"
import { createMachine, type Machine, until } from "./run-tackle.ts"
import { hasTmux, openTerminal, type Terminal } from "./terminal.ts"

/** Returns the text of the user's last message. */
function lastText({ messages }: ModelRequestBody): string {
  const { content } = messages.findLast(({ role }) => role === "user") ?? {}
  return typeof content === "string" ? content : JSON.stringify(content)
}

/** A model that follows the script of the word that the user's text contains, and otherwise answers `heard <text>`. */
function scripts(known: Record<string, Reply[]>): Script {
  return ({ body }) => {
    const text = lastText(body)
    const asked = body.messages.findLastIndex(({ role }) => role === "user")
    const step = body.messages.slice(asked).filter(({ role }) => role === "assistant").length
    const script = Object.entries(known).find(([word]) => text.includes(word))?.[1]
    return script?.[step] ?? { text: `heard ${text.slice(-200)}` }
  }
}

const bash = (command: string): Reply => ({
  calls: [{ name: "bash", arguments: { command, description: "Do it" } }],
})
/** Takes longer than a test needs it to. */
const slow: Reply[] = [{ text: "word ".repeat(400), pieceSize: 5, pieceDelayMs: 25 }]

async function open(
  options: {
    script: Script
    files?: Record<string, string>
    /** Permissions without questions. */
    allow?: string[]
  },
  ...flags: string[]
): Promise<{ machine: Machine; terminal: Terminal; send(text: string): Promise<void> }> {
  const permission = Object.fromEntries(options.allow?.map((name) => [name, "allow"]) ?? [])
  const machine = await createMachine({ ...options, config: { sandbox: "off", permission } })
  const terminal = await openTerminal(machine)
  await terminal.tackle(...flags.flatMap((flag) => [flag, machine.project.directory]))
  await terminal.sees("test/m")
  return { machine, terminal, send: (text) => terminal.type(text) }
}

/** Returns the ids of the processes that were started with `--dir` and the directory. */
function interfacesIn(directory: string): number[] {
  const isInterface = (id: string) => {
    try {
      return readFileSync(`/proc/${id}/cmdline`, "utf8").includes(`--dir\0${directory}`)
    } catch {
      return false
    }
  }
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && isInterface(name))
    .map(Number)
}

/** Matches a permission card that accepts keys, for the command. */
const card = (command: string) => new RegExp(`${command}[\\s\\S]*Press a letter or digit`)

describe.skipIf(!hasTmux)("input in the interactive terminal (needs tmux)", () => {
  test("answers each kind of card", async () => {
    const commands = [
      "touch once",
      "mkdir session",
      "mkdir again",
      "touch reason",
      "touch narrow",
      "touch narrow other",
    ]
    const { machine, terminal, send } = await open({
      script: scripts({
        work: [
          ...commands.map(bash),
          {
            calls: [
              {
                name: "question",
                arguments: {
                  questions: [{ question: "Which color?", options: [{ label: "red" }, { label: "green" }] }],
                },
              },
            ],
          },
        ],
      }),
    })
    const has = (name: string) => existsSync(join(machine.project.directory, name))
    await send("work")
    await terminal.sees(card("touch once"))
    await terminal.press("y")
    await terminal.sees(card("mkdir session"))
    expect(has("once")).toBe(true)
    await terminal.press("s")
    // The grant for the session covers the next command, which does not ask.
    await terminal.sees(card("touch reason"))
    expect([has("session"), has("again")]).toEqual([true, true])
    await terminal.press("e")
    await terminal.sees("What should the agent do instead?")
    await terminal.type("stop touching")
    await terminal.sees(card("touch narrow"))
    await terminal.press("p")
    await terminal.sees("> touch *")
    await terminal.press("BSpace")
    await terminal.type("narrow")
    await terminal.sees("2 of 2")
    await terminal.press("Enter")
    // The grant covers only the narrower pattern, so this command asks.
    await terminal.sees(card("touch narrow other"))
    await terminal.press("n")
    await terminal.sees(/Which color[\s\S]*Press a digit/)
    await terminal.press("2")
    await terminal.sees("heard")
    const results = JSON.stringify(machine.server.requests.at(-1)?.body)
    expect(results).toContain("stop touching")
    expect(results).toContain("→ green")
    expect(["once", "reason", "narrow", "other"].map(has)).toEqual([true, false, true, false])
  })

  test("does not answer a card with keys that the user is typing", async () => {
    const { machine, terminal, send } = await open({
      script: scripts({ work: [{ ...bash("touch made"), delayMs: 2_000 }] }),
    })
    await send("work")
    await terminal.sees("working")
    // The card appears while the user types without a pause.
    for (const letter of "yes yes 1 ") await terminal.press(letter === " " ? "Space" : letter)
    await terminal.sees(card("touch made"))
    await terminal.sees(" yes yes 1")
    expect(existsSync(join(machine.project.directory, "made"))).toBe(false)
    await terminal.press("n")
    await terminal.sees("heard work")
    await terminal.sees(" yes yes 1")
  })

  test("writes no key for a card into the prompt", async () => {
    const { machine, terminal, send } = await open({ script: scripts({ work: [bash("touch made")] }) })
    await send("work")
    await terminal.sees("touch made")
    await terminal.press("y")
    // The letter is dropped if the card does not accept keys yet. Otherwise, it answers the card.
    const isAnswered = () => existsSync(join(machine.project.directory, "made"))
    const asks = async () => card("touch made").test(await terminal.screen())
    await until("the letter is used", async () => isAnswered() || (await asks()))
    await terminal.press("Escape")
    await terminal.sees("heard work")
    expect(await terminal.screen()).toMatch(/─\n\n─+\nbuild/)
  })

  test("steers, queues, and edits a queued input without sending it twice", async () => {
    const { machine, terminal, send } = await open({ script: scripts({ slow }) })
    await send("slow task")
    await terminal.sees("working")
    await terminal.press("first later", "Tab")
    await terminal.press("second later", "Tab")
    await terminal.sees("queued: second later")
    await terminal.press("a draft", "M-Up")
    await terminal.sees("editing: second later")
    await terminal.press("Escape")
    await terminal.sees("queued: second later")
    await terminal.sees(" a draft")
    // In an empty editor, Up takes the input back instead of writing its text again.
    await terminal.press("C-u", "Up")
    await terminal.sees("editing: second later")
    await terminal.press(" changed", "Tab")
    await terminal.sees("queued: second later changed")
    await terminal.press("go another way", "Enter")
    await terminal.sees("next: go another way")
    await terminal.press("Escape")
    await terminal.sees("The queue is paused")
    await terminal.press("continue", "Enter")
    await terminal.sees("heard second later changed")
    const sent = machine.server.requests.map(({ body }) => lastText(body))
    expect(sent.filter((text) => text.includes("second later"))).toEqual(["second later changed"])
    expect(sent.filter((text) => text.includes("first later"))).toHaveLength(1)
  })

  test("interrupts with Escape and keeps the text in the editor", async () => {
    const { terminal, send } = await open({ script: scripts({ slow }) })
    await send("slow task")
    await terminal.sees("word word")
    await terminal.press("half a thought", "Escape")
    await terminal.sees("The run was interrupted.")
    await terminal.sees(" half a thought")
  })

  test("undoes, redoes, and rewinds the conversation with its files", async () => {
    const edit = (from: string, to: string): Reply[] => [
      { calls: [{ name: "read", arguments: { filePath: "notes.txt" } }] },
      { calls: [{ name: "edit", arguments: { filePath: "notes.txt", oldString: from, newString: to } }] },
    ]
    const { machine, terminal, send } = await open({
      files: { "notes.txt": "one\n" },
      script: scripts({ alpha: edit("one", "two"), beta: edit("two", "three") }),
    })
    const notes = () => readFileSync(join(machine.project.directory, "notes.txt"), "utf8").trim()
    for (const [text, result] of [
      ["alpha", "two"],
      ["beta", "three"],
    ] as const) {
      await send(text)
      await terminal.sees(card("notes.txt"))
      await terminal.press("y")
      await terminal.sees(`heard ${text}`)
      expect(notes()).toBe(result)
    }
    const prompt = (text: string) => new RegExp(`─\\n ${text}\\s*\\n─`)
    await send("/undo")
    expect(await terminal.sees(prompt("beta"))).toMatch(/Undid the last turn[\s\S]*restored notes\.txt/)
    expect([notes(), (await terminal.screen()).includes("heard beta")]).toEqual(["two", false])
    await terminal.press("C-u")
    await send("/undo")
    expect(await terminal.sees(prompt("alpha"))).not.toContain("heard alpha")
    expect(notes()).toBe("one")
    await terminal.press("C-u")
    await send("/redo")
    await terminal.sees(/heard alpha[\s\S]*Redid the turn/)
    expect(notes()).toBe("two")
    await send("/redo")
    await terminal.sees(/heard beta[\s\S]*Redid the turn/)
    expect(notes()).toBe("three")
    await send("/undo")
    await terminal.sees(prompt("beta"))
    await terminal.press(" no more", "Enter")
    await terminal.sees(card("notes.txt"))
    await terminal.press("Escape")
    await terminal.sees("heard beta no more")
    await send("/redo")
    await terminal.sees("you sent a prompt after the undo.")
    await terminal.press("C-u")
    await send("/undo")
    await terminal.sees(prompt("beta no more"))
    await terminal.press("C-u")
    await send("beta")
    await terminal.sees(card("notes.txt"))
    await terminal.press("y")
    await terminal.sees("heard beta")
    await terminal.press("Escape", "Escape")
    await terminal.sees(/Rewind to before[\s\S]*❯ beta .* · 1 file\n[\s\S]*alpha .* · 1 file\n/)
    await terminal.press("Down", "Enter")
    await terminal.sees(/Rewind ─[\s\S]*notes\.txt[\s\S]*❯ conversation and files\s+1 file from 2 turns/)
    await terminal.press("Enter")
    await terminal.sees("Rewound. Restored 1 file.")
    expect(notes()).toBe("one")
    await terminal.sees(/─\n alpha\s*\n─/)
    await terminal.press(" again", "Enter")
    await terminal.sees(card("notes.txt"))
    await terminal.press("Escape")
    await terminal.sees("heard alpha again")
    // The earlier conversation is not part of the rewound session.
    expect(JSON.stringify(machine.server.requests.at(-1)?.body.messages)).not.toContain("beta")
  })

  test("rewinds only the conversation, or only the files", async () => {
    const { machine, terminal, send } = await open({
      allow: ["edit", "write"],
      script: scripts({
        alpha: [{ calls: [{ name: "write", arguments: { filePath: "a.txt", content: "a" } }] }],
      }),
    })
    const file = join(machine.project.directory, "a.txt")
    await send("alpha")
    await terminal.sees("heard alpha")
    await terminal.press("Escape", "Escape")
    await terminal.sees(/Rewind to before[\s\S]*❯ alpha/)
    await terminal.press("Enter")
    await terminal.sees("❯ conversation and files")
    await terminal.press("Down", "Enter")
    await terminal.sees(/─\n alpha\s*\n─/)
    expect(await terminal.screen()).not.toContain("heard alpha")
    expect(existsSync(file)).toBe(true)
    await terminal.press("C-u")
    await send("/sessions")
    await terminal.sees(/Sessions? ─/)
    await terminal.press("Down", "Enter")
    await terminal.sees("heard alpha")
    await terminal.press("Escape", "Escape")
    await terminal.sees(/Rewind to before[\s\S]*❯ alpha/)
    await terminal.press("Enter")
    await terminal.sees("❯ conversation and files")
    await terminal.press("Down", "Down", "Enter")
    await until("the file is gone", () => !existsSync(file))
    expect(await terminal.screen()).toContain("heard alpha")
  })

  test("finds an earlier text with Ctrl+R", async () => {
    const { terminal, send } = await open({ script: scripts({}) })
    await send("the first needle")
    await terminal.sees("heard the first needle")
    await send("something else")
    await terminal.sees("heard something else")
    await terminal.press("C-r")
    await terminal.sees(/Earlier inputs[\s\S]*❯ something else\n +the first needle/)
    await terminal.press("need")
    await terminal.sees("❯ the first needle")
    await terminal.press("Enter")
    await terminal.sees(/─\n the first needle\s*\n─/)
  })

  test("ends, and keeps the session, when the terminal closes during a run", async () => {
    const { machine, terminal, send } = await open({ script: scripts({ slow }) }, "--dir")
    await send("slow work")
    await terminal.sees("word word")
    const { directory } = machine.project
    expect(interfacesIn(directory).length).toBeGreaterThan(0)
    await terminal.close()
    await until("the program has ended", () => interfacesIn(directory).length === 0)
    const { stdout } = await machine.run(["session", "list"])
    expect(stdout).toContain("slow work")
  })

  test("refuses an unknown model before the first prompt", async () => {
    const { terminal, send } = await open({ script: scripts({}) })
    await send("/model test/other")
    await terminal.sees("test/other is unknown")
    await terminal.press("C-u")
    await send("the first needle")
    await terminal.sees("heard the first needle")
  })

  test("forks from a message, changes the model, and finds a session by its text", async () => {
    const { machine, terminal, send } = await open({ script: scripts({}) })
    await send("the first needle")
    await terminal.sees("heard the first needle")
    await send("the second")
    await terminal.sees("heard the second")
    await send("/fork")
    await terminal.sees("Fork after a message's turn")
    await terminal.press("first", "Enter")
    await terminal.sees("This is a copy.")
    await send("the third")
    await terminal.sees("heard the third")
    await send("/sessions")
    await terminal.sees(/1 of 2|2 of 2/)
    expect(await terminal.screen()).toMatch(/ the first needle {2}[^\n]*\n *❯? └ the first needle \(fork\) ✓/)
    await terminal.press("Escape")
    await until("the list is closed", async () => !(await terminal.screen()).includes("type to filter"))
    expect(JSON.stringify(machine.server.requests.at(-1)?.body.messages)).not.toContain("the second")
    await send("/model test/other")
    await terminal.sees("test/other is unknown")
    await terminal.press("C-u")
    await send("/model")
    await terminal.sees("❯ test/m ✓")
    await terminal.press("offline", "Enter")
    await terminal.sees("The model is now tackle/offline.")
    await send("/new")
    await send("/sessions")
    await terminal.sees(/Sessions.*1 of 2/)
    await terminal.press("second")
    await terminal.sees(/❯ the first needle .*\n\s+.*the second/)
    await terminal.press("Enter")
    await terminal.sees(/heard the second[\s\S]*\n─/)
  })

  test("renames and deletes sessions, and lists those of all projects", async () => {
    const { machine, terminal, send } = await open({ script: scripts({}) })
    await send("alpha")
    await terminal.sees("heard alpha")
    await send("/new")
    await send("beta")
    await terminal.sees("heard beta")
    await send("/sessions")
    await terminal.sees(/❯ beta ✓[^\n]*\n +alpha[\s\S]*› beta\n +heard beta/)
    await terminal.press("C-x")
    await terminal.sees("This session is open.")
    await terminal.press("Down", "C-r")
    await terminal.sees("Rename the session")
    await terminal.press(" and omega", "Enter")
    await terminal.sees(/❯ alpha and omega/)
    await terminal.press("C-x")
    await terminal.sees("Press Ctrl+X again")
    await terminal.press("C-x")
    await until("the session is deleted", async () => !(await terminal.screen()).includes("alpha and omega"))
    const other = join(machine.home, "other")
    mkdirSync(other)
    await machine.run(["run", "gamma", "--dir", other])
    await terminal.press("C-a")
    await terminal.sees(/gamma/)
    await terminal.press("gamma")
    await terminal.sees(/❯ gamma/)
    await terminal.press("Enter")
    await terminal.sees(/This session belongs to[\s\S]*tackle\s+-s\s+ses_/)
  })

  test("shows the changes, and exports to a directory outside of the project", async () => {
    const { machine, terminal, send } = await open({
      script: scripts({ work: [bash("echo one > made")] }),
      allow: ["*"],
    })
    await send("work")
    await terminal.sees(/heard|✓/)
    await terminal.sees("made")
    await send("/diff")
    await terminal.sees(/Changes in 1 file[\s\S]*added made\n +1 \+ one/)
    await send("/export")
    await terminal.sees(/Exported the session to\s+\S+exports\/ses_/)
    expect(readdirSync(machine.project.directory).filter((name) => name.startsWith("ses_"))).toEqual([])
    await send("/copy")
    await terminal.sees("Copied the last answer")
  })

  test("sends the whole of a long paste", async () => {
    const { machine, terminal } = await open({ script: scripts({}) })
    const text = Array.from({ length: 500 }, (_, line) => `line ${line}`).join("\n")
    await terminal.paste(text)
    await terminal.sees("[paste #1 +500 lines]")
    await terminal.press("Enter")
    await terminal.sees("heard")
    expect(lastText(machine.server.requests.at(-1)?.body ?? { messages: [] })).toBe(text)
    await terminal.sees(/ line 18\n +… 481 more lines \(Ctrl\+O shows all\)/)
    await terminal.press("C-o")
    await terminal.sees(/ line 18\n +line 19\n/)
  })

  test("continues after kill -9 with the waiting inputs and the history", async () => {
    const { machine, terminal, send } = await open({ script: scripts({ slow }) }, "--dir")
    await send("slow task")
    await terminal.sees("word word")
    await terminal.press("for later", "Tab")
    await terminal.sees("queued: for later")
    for (const pid of interfacesIn(machine.project.directory)) process.kill(pid, "SIGKILL")
    await terminal.sees("Killed")
    // The killed process could not restore the terminal.
    await terminal.press("stty sane; echo sane $((40 + 2))", "C-j")
    await terminal.sees("sane 42")
    await terminal.tackle("-c")
    await terminal.sees("queued: for later")
    await terminal.press("continue", "Enter")
    await terminal.sees("heard for later")
    await terminal.press("Up", "Up")
    await terminal.sees(/─\n for later\s*\n─/)
  })

  test("runs a shell command without asking, and sends its output with the next prompt", async () => {
    const { machine, terminal, send } = await open({
      script: ({ body }) => ({
        text: `got ${lastText(body)
          .match(/(?:six|ten|one)=\d+/g)
          ?.join(" ")}`,
      }),
    })
    await send("!touch made; echo six=$((6 * 7))")
    expect(await terminal.sees(/✓ \$ touch made[\s\S]* six=42\n/)).not.toContain("[exit code")
    expect(existsSync(join(machine.project.directory, "made"))).toBe(true)
    await terminal.sees(/\+ \$ touch made; echo [^\n]* · sent with the next prompt\. Esc removes it\n/)
    await send("!!echo one=$((0 + 1))")
    await terminal.sees(" one=1")
    await send("!echo ten=$((5 + 5)); false")
    await terminal.sees(" ten=10")
    await send("first")
    await terminal.sees("got six=42 ten=10")
    expect(await terminal.screen()).not.toContain("sent with the next prompt")

    await send("!echo ten=$((5 + 6))")
    await terminal.sees("+ $ echo ten")
    await terminal.press("Escape")
    await until(
      "the output is removed",
      async () => !(await terminal.screen()).includes("with the next prompt"),
    )
    await send("second")
    await terminal.sees("got undefined")
    expect(machine.server.requests).toHaveLength(2)
  })

  test("shows the output of a shell command while it runs, and stops the command with Ctrl+C", async () => {
    const { terminal, send } = await open({ script: scripts({}), allow: ["bash"] })
    await send("!!mkfifo fifo")
    await terminal.sees("✓ $ mkfifo")
    await send("!!echo begun; read line < fifo; echo never")
    await terminal.sees(/● \$ echo begun[^\n]*\n {2}begun\n/)
    await terminal.sees("Esc stops the command")
    await terminal.press("C-c")
    await terminal.sees(/✗ \$ echo begun[^\n]*\n {2}begun\n {2}\[stopped\]/)
    await send("!!seq 1 500")
    const screen = await terminal.sees(/✓ \$ seq[\s\S]* 500\n/)
    expect(screen).toMatch(/… 46\d earlier lines/)
    expect(screen).not.toContain(" 100\n")
    await send("hello")
    // The output stays in the conversation.
    expect(await terminal.sees("heard hello")).toMatch(/500[\s\S]*› hello/)
  })

  test("names the command that an unknown command resembles, and keeps the text", async () => {
    const { terminal, send } = await open({ script: [] })
    await send("/undoo")
    await terminal.sees("Unknown command /undoo. Did you mean /undo?")
    await terminal.sees(" /undoo")
  })
})
