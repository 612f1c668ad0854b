import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { KeybindingsManager, setKeybindings, TUI_KEYBINDINGS } from "@earendil-works/pi-tui"
import { afterEach, expect, onTestFinished, test } from "vitest"
import { loadKeys } from "../../src/tui/keybindings.ts"

afterEach(() => setKeybindings(new KeybindingsManager(TUI_KEYBINDINGS)))

async function load(text: string) {
  const directory = await mkdtemp(join(tmpdir(), "tackle-keys-"))
  onTestFinished(() => rm(directory, { recursive: true }))
  await writeFile(join(directory, "keybindings.json"), text)
  return loadKeys(join(directory, "keybindings.json"))
}

test("has keys without a file", async () => {
  const { keys, problems } = await loadKeys("/does/not/exist")
  expect(problems).toEqual([])
  expect(keys.matches("\u001b", "interrupt")).toBe(true)
  expect(keys.label("searchHistory")).toBe("Ctrl+R")
  expect(keys.list().find(({ name }) => name === "editor.undo")?.keys).toEqual(["Ctrl+-"])
})

test("reports no conflict among its own keys", async () => {
  const { keys } = await loadKeys("/does/not/exist")
  const all = keys.list().filter(({ name }) => !/^(?:select|altScreen)\./.test(name))
  const shared = ["Tab", "Ctrl+C", "Ctrl+D", "PgUp", "PgDn"]
  const seen = all.flatMap((action) => action.keys).filter((key) => !shared.includes(key))
  expect(seen.toSorted()).toEqual([...new Set(seen)].toSorted())
})

test("takes keys from the file, and removes them with an empty list", async () => {
  const { keys, problems } = await load(
    '{ // comment\n "searchHistory": "f2", "queue": ["ctrl+q", "f3"], "cycleAgent": [], "editor.undo": "f4" }',
  )
  expect(problems).toEqual([])
  expect(keys.matches("\u001bOQ", "searchHistory")).toBe(true)
  expect(keys.matches("\u0012", "searchHistory")).toBe(false)
  expect(keys.matches("\u0011", "queue")).toBe(true)
  expect(keys.label("cycleAgent")).toBe("")
  expect(keys.list().find(({ name }) => name === "editor.undo")?.keys).toEqual(["F4"])
})

test.each([
  {
    text: '{ "serchHistory": "f2" }',
    problem: /unknown action "serchHistory"\. Did you mean "searchHistory"\?/,
  },
  { text: '{ "queue": "ctrl+" }', problem: /"queue" has the unknown key "ctrl\+"/ },
  { text: '{ "queue": 3 }', problem: /"queue" has the unknown key 3/ },
  {
    text: '{ "queue": "ctrl+r" }',
    problem: /the key "ctrl\+r" has two actions, "queue" and "searchHistory"/,
  },
  { text: '{\n"queue": ', problem: /keybindings\.json:2: not valid JSON/ },
  { text: "[]", problem: /expected an object/ },
])("reports what is wrong in $text", async ({ text, problem }) => {
  const { problems } = await load(text)
  expect(problems).toEqual([expect.stringMatching(problem)])
})
