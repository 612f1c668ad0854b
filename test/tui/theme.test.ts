import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Markdown } from "@earendil-works/pi-tui"
import { expect, onTestFinished, test } from "vitest"
import { builtInTheme, colorDepth, editorTheme, markdownTheme, type Theme } from "../../src/tui/theme.ts"
import { listThemes, openThemes } from "../../src/tui/theme-file.ts"

async function directoryWith(files: Record<string, string>): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "tackle-themes-"))
  onTestFinished(() => rm(directory, { recursive: true }))
  for (const [name, text] of Object.entries(files)) await writeFile(join(directory, name), text)
  return directory
}

test("has a dark and a light theme, and adds those of the directory", async () => {
  const directory = await directoryWith({
    "mine.json": JSON.stringify({
      background: "light",
      colors: { accent: "#ff8000", dim: 99, error: "magenta" },
    }),
  })
  const entries = await listThemes(directory, "full")
  expect(entries.map(({ name }) => name)).toEqual(["dark", "light", "mine"])
  const { theme } = entries[2] as { theme: Theme }
  expect(theme.accent("x")).toBe("\u001b[38;2;255;128;0mx\u001b[39m")
  expect(theme.dim("x")).toBe("\u001b[38;5;99mx\u001b[39m")
  expect(theme.error("x")).toBe("\u001b[35mx\u001b[39m")
  expect(theme.warning("x")).toBe(builtInTheme("light", "full").warning("x"))
})

test.each([
  { text: "{", reason: /mine\.json cannot be read or is not valid JSON/ },
  {
    text: '{ "background": "dark", "colors": { "accent": "blurple" } }',
    reason: /mine\.json.*colors\.accent/,
  },
  { text: '{ "background": "dark", "colors": { "acent": "red" } }', reason: /mine\.json.*acent/ },
  { text: '{ "colors": {} }', reason: /mine\.json.*background/ },
])("says why $text is not a theme", async ({ text, reason }) => {
  const directory = await directoryWith({ "mine.json": text })
  const entries = await listThemes(directory, "full")
  expect(entries[2]).toMatchObject({ name: "mine", problem: expect.stringMatching(reason) })
})

test("remembers the chosen theme", async () => {
  const directory = await directoryWith({ "mine.json": '{ "background": "dark", "colors": {} }' })
  const themes = openThemes({ directory, choice: join(directory, "data", "theme") }, "256")
  expect(await themes.chosen()).toBeUndefined()
  await themes.choose("mine")
  expect(await themes.chosen()).toMatchObject({ name: "mine", theme: { background: "dark" } })
  await rm(join(directory, "mine.json"))
  expect(await themes.chosen()).toMatchObject({ problem: expect.stringContaining("mine") })
  await themes.choose(undefined)
  expect(await themes.chosen()).toBeUndefined()
})

test("has only the built-in themes without a directory", async () => {
  expect((await listThemes("/does/not/exist", "256")).map(({ name }) => name)).toEqual(["dark", "light"])
})

test.each([
  { env: { NO_COLOR: "1", COLORTERM: "truecolor" }, depth: "none" },
  { env: { TERM: "dumb" }, depth: "none" },
  { env: { COLORTERM: "truecolor" }, depth: "full" },
  { env: { TERM: "xterm" }, depth: "256" },
])("uses $depth colors with $env", ({ env, depth }) => {
  expect(colorDepth(env)).toBe(depth)
})

test("uses no colors at the depth none, and the nearest of 256 without true color", async () => {
  const directory = await directoryWith({
    "mine.json": '{ "background": "dark", "colors": { "accent": "#ff8000" } }',
  })
  expect(builtInTheme("dark", "none").error("x")).toBe("x")
  const [, , mine] = await listThemes(directory, "256")
  expect((mine as { theme: Theme }).theme.accent("x")).toBe("\u001b[38;5;214mx\u001b[39m")
})

test("colors Markdown and the border of the editor", () => {
  const theme = builtInTheme("dark", "256")
  expect(new Markdown("# Title", 0, 0, markdownTheme(theme)).render(20).join("")).toContain("\u001b[36m")
  expect(editorTheme(theme).borderColor("x")).toBe(theme.border("x"))
})
