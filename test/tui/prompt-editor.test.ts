import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { TUI } from "@earendil-works/pi-tui"
import { describe, expect, onTestFinished, test, vi } from "vitest"
import type { CompletionSources } from "../../src/tui/completion.ts"
import { type InputHistory, openHistory } from "../../src/tui/history.ts"
import { loadKeys } from "../../src/tui/keybindings.ts"
import { createPromptEditor, type WrittenInput } from "../../src/tui/prompt-editor.ts"
import { keys, rendered, theme } from "./components.ts"

async function temporary(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "tackle-editor-"))
  onTestFinished(() => rm(directory, { recursive: true }))
  return directory
}

interface Given {
  history?: InputHistory
  completions?: Partial<CompletionSources>
  env?: Record<string, string>
  running?: boolean
}

async function open({ history, completions = {}, env = {}, running = false }: Given = {}) {
  const sent: (WrittenInput & { delivery: string })[] = []
  const calls: string[] = []
  const tui = {
    terminal: { rows: 24, columns: 80 },
    requestRender() {},
    stop: () => calls.push("stop"),
    start: () => calls.push("start"),
  } as unknown as TUI
  const editor = createPromptEditor({
    tui,
    theme,
    keys: (await loadKeys("/does/not/exist")).keys,
    history: history ?? (await openHistory(join(await temporary(), "history.jsonl"))),
    completions: { commands: async () => [], files: async () => [], ...completions },
    env,
    onSend: (input, delivery) => sent.push({ ...input, delivery }),
    canQueue: () => running,
    onSearchHistory: () => calls.push("search"),
    onHelp: () => calls.push("help"),
    onProblem: (message) => calls.push(message),
  })
  const press = (...inputs: string[]) => {
    for (const data of inputs) editor.handleInput?.(data)
  }
  return { editor, sent, calls, press }
}

const png = Buffer.from("iVBORw0KGgo=", "base64")

describe("the editor of inputs", () => {
  test("sends with Enter, and inserts a new line with three other keys", async () => {
    const { editor, sent, press } = await open()
    press(..."one", "\n", ..."two", "\\", keys.enter, ..."three", "\u001b[13;2u", ..."four")
    expect(rendered(editor, 40)).toMatch(/one\n two\n three\n four/)
    press(keys.enter)
    expect(sent).toEqual([{ text: "one\ntwo\nthree\nfour", files: [], delivery: "steer" }])
    expect(editor.isEmpty).toBe(true)
    press(keys.enter)
    expect(sent).toHaveLength(1)
  })

  test("undoes, and yanks what was cut", async () => {
    const { editor, press } = await open()
    press(..."keep this", "\u0015")
    expect(editor.text()).toBe("")
    press("\u0019")
    expect(editor.text()).toBe("keep this")
    press("\u001f")
    expect(editor.text()).toBe("")
  })

  test("queues with Tab and Alt+Enter only while a run is active", async () => {
    const busy = await open({ running: true })
    busy.press(..."later", keys.tab, ..."even later", "\u001b\r")
    expect(busy.sent.map(({ text, delivery }) => `${delivery} ${text}`)).toEqual([
      "queue later",
      "queue even later",
    ])
    const idle = await open()
    idle.press(..."now", keys.tab)
    expect(idle.sent).toEqual([])
    expect(idle.editor.text()).toBe("now")
  })

  test("shows a mark for a long paste and sends the whole of it", async () => {
    const { editor, sent, press } = await open()
    const text = Array.from({ length: 500 }, (_, line) => `line ${line}`).join("\n")
    press(keys.paste(text))
    expect(rendered(editor)).toContain("[paste #1 +500 lines]")
    press(keys.enter)
    expect(sent[0]?.text).toBe(text)
  })

  test("shows the text of a long paste when it is pasted again, and inserts it a third time", async () => {
    const { editor, sent, press } = await open()
    const text = Array.from({ length: 12 }, (_, index) => `line ${index}`).join("\n")
    const paste = `\u001b[200~${text}\u001b[201~`
    press(..."Explain ", paste)
    expect(rendered(editor, 40)).toContain("Explain [paste #1 +12 lines]")
    press(paste)
    expect(rendered(editor, 40)).toMatch(/line 10\n line 11/)
    expect(editor.text()).toBe(`Explain ${text}`)
    press(paste, keys.enter)
    expect(sent.map((input) => input.text)).toEqual([`Explain ${text}${text}`])
  })

  test("inserts a long paste again after its mark was deleted", async () => {
    const { editor, press } = await open()
    const text = "long ".repeat(300)
    const paste = `\u001b[200~${text}\u001b[201~`
    press(paste, keys.backspace)
    expect(editor.isEmpty).toBe(true)
    press(paste)
    expect(rendered(editor, 40)).toContain("[paste #1 1500 chars]")
    expect(editor.text()).toBe(text)
  })

  test("does not send a paste that ends with a line break", async () => {
    const { editor, sent, press } = await open()
    press(keys.paste("rm -rf /\n"), "x")
    expect(sent).toEqual([])
    expect(editor.text()).toContain("rm -rf /\n")
  })

  test("finds earlier inputs with Up, also those of earlier sessions", async () => {
    const file = join(await temporary(), "history.jsonl")
    const first = await open({ history: await openHistory(file) })
    first.press(..."from before", keys.enter)
    // The text is stored at once, so that it is kept if the process is killed.
    expect((await openHistory(file)).list()).toEqual(["from before"])
    const second = await open({ history: await openHistory(file) })
    second.press(..."now", keys.enter, keys.up, keys.up)
    expect(second.editor.text()).toBe("from before")
  })

  test("attaches the image of a pasted path while its mark is in the text", async () => {
    const path = join(await temporary(), "a picture.png")
    await writeFile(path, png)
    const { editor, sent, press } = await open()
    press(..."see ", keys.paste(path.replaceAll(" ", "\\ ")))
    await vi.waitFor(() => expect(editor.text()).toBe("see [image 1] "))
    press(keys.enter)
    expect(sent).toEqual([
      {
        text: "see [image 1]",
        files: [
          {
            mime: "image/png",
            url: `data:image/png;base64,${png.toString("base64")}`,
            filename: "a picture.png",
          },
        ],
        delivery: "steer",
      },
    ])
    press(keys.paste(`'${path}'`))
    await vi.waitFor(() => expect(editor.text()).toContain("[image 1]"))
    press("\u0015", ..."no picture", keys.enter)
    expect(sent[1]).toMatchObject({ text: "no picture", files: [] })
  })

  test("inserts the path of an image that does not exist", async () => {
    const { editor, press } = await open()
    press(keys.paste("/does/not/exist.png"))
    await vi.waitFor(() => expect(editor.text()).toContain("/does/not/exist.png"))
  })

  test("attaches the image of the clipboard, or says what is missing", async () => {
    const { calls, press } = await open()
    press("\u0016")
    await vi.waitFor(() => expect(calls[0]).toMatch(/No clipboard is available|install pngpaste/))
    const bin = await temporary()
    vi.stubEnv("PATH", bin)
    const bare = await open({ env: { DISPLAY: ":9" } })
    bare.press("\u0016")
    await vi.waitFor(() => expect(bare.calls[0]).toMatch(/To paste an image, install (xclip|pngpaste)\./))
    vi.unstubAllEnvs()
    await writeFile(join(bin, "xclip"), `#!/bin/sh\nprintf '${"\\211PNG"}'\n`)
    await chmod(join(bin, "xclip"), 0o755)
    vi.stubEnv("PATH", `${bin}:${process.env.PATH}`)
    onTestFinished(() => void vi.unstubAllEnvs())
    const second = await open({ env: { DISPLAY: ":9" } })
    second.press("\u0016")
    await vi.waitFor(() => expect(second.editor.text()).toBe("[image 1] "))
  })

  test("opens $VISUAL with arguments and takes its text", async () => {
    const script = join(await temporary(), "edit.sh")
    await writeFile(script, '#!/bin/sh\necho "$1: $(cat "$2")" > "$2"\n')
    await chmod(script, 0o755)
    const { editor, calls, press } = await open({ env: { VISUAL: `${script} --wait` } })
    press(..."text", "\u0007")
    await vi.waitFor(() => expect(editor.text()).toBe("--wait: text"))
    expect(calls).toEqual(["stop", "start"])
    const none = await open()
    none.press("\u0007")
    await vi.waitFor(() =>
      expect(none.calls).toEqual(["Set VISUAL or EDITOR to edit the input in an editor."]),
    )
    const missing = await open({ env: { EDITOR: "/does/not/exist" } })
    missing.press(..."kept", "\u0007")
    await vi.waitFor(() => expect(missing.calls[2]).toMatch(/Cannot start the editor/))
    expect(missing.editor.text()).toBe("kept")
  })

  test("shows the keys with ? in an empty editor only", async () => {
    const { editor, calls, press } = await open()
    press("?", "a", "?")
    expect(calls).toEqual(["help"])
    expect(editor.text()).toBe("a?")
  })

  test("completes commands with their descriptions, arguments, and files", async () => {
    const { editor, press } = await open({
      completions: {
        commands: async () => [
          { name: "help", description: "Show help" },
          {
            name: "model",
            description: "Change the model",
            complete: async () => [{ value: "test/a", label: "test/a" }],
          },
        ],
        files: async (query) => ["src/app.ts", "my docs/a.md"].filter((path) => path.includes(query)),
      },
    })
    press(..."/mo")
    await vi.waitFor(() => expect(rendered(editor)).toMatch(/model\s+Change the model/))
    press(keys.tab, "t")
    await vi.waitFor(() => expect(rendered(editor)).toContain("test/a"))
    press(keys.tab)
    expect(editor.text()).toBe("/model test/a ")
    press("\u0015", ..."see @app")
    await vi.waitFor(() => expect(rendered(editor)).toContain("src/app.ts"))
    press(keys.tab)
    expect(editor.text()).toBe("see @src/app.ts ")
    press(..."and @docs")
    await vi.waitFor(() => expect(rendered(editor)).toContain("my docs/a.md"))
    press(keys.enter)
    expect(editor.text()).toBe('see @src/app.ts and @"my docs/a.md" ')
  })

  test("suggests nothing if a source of completions fails", async () => {
    const { editor, press } = await open({
      completions: { files: () => Promise.reject(new Error("no server")) },
    })
    press(..."@abc")
    await new Promise((resolve) => setTimeout(resolve, 50))
    expect(rendered(editor)).toContain("@abc")
  })
})
