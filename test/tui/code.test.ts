import { stripVTControlCharacters } from "node:util"
import fc from "fast-check"
import { beforeAll, expect, test, vi } from "vitest"
import { loadHighlighter, renderCode } from "../../src/tui/code.ts"
import { builtInTheme } from "../../src/tui/theme.ts"
import { theme } from "./components.ts"

const block = '```ts\nconst a = "x" // one\n```'

test("shows a block without colors until the highlighter has been loaded, and loads it", async () => {
  // Another test file may have loaded the highlighter.
  vi.resetModules()
  const { forgetBlocks, renderMarkdown } = await import("../../src/tui/markdown.ts")
  const { loadHighlighter: load } = await import("../../src/tui/code.ts")
  expect(renderMarkdown(block, 80, theme)[1]).toBe('  const a = "x" // one')
  await load()
  forgetBlocks()
  expect(renderMarkdown(block, 80, theme)[1]).toBe(
    `  ${theme.keyword("const")} a = ${theme.string('"x"')} ${theme.comment("// one")}`,
  )
})

const whole = { theme, isOpen: false }

beforeAll(loadHighlighter)

test("knows aliases of languages, and shows unknown languages and blocks without a language as they are", () => {
  expect(renderCode("def f(): pass", "py", whole).join()).toContain(theme.keyword("def"))
  expect(renderCode("FOR x", "SQL title=a", whole).join()).toContain(theme.keyword("FOR"))
  for (const language of ["nonsense", "", undefined, "__proto__"])
    expect(renderCode("const a = 1", language, whole)).toEqual(["const a = 1"])
})

test("uses no colors if the terminal has none", () => {
  const plain = builtInTheme("dark", "none")
  expect(renderCode("const a = 1", "ts", { theme: plain, isOpen: false })).toEqual(["const a = 1"])
})

test("gives each line of a comment its own style", () => {
  const lines = renderCode("/* one\n two */ x", "js", whole)
  expect(lines).toEqual([theme.comment("/* one"), `${theme.comment(" two */")} x`])
})

test("highlights the complete lines of a block that is being streamed", () => {
  const open = { theme, isOpen: true }
  expect(renderCode("let a", "js", open)).toEqual(["let a"])
  expect(renderCode("let a\nlet b", "js", open)).toEqual([`${theme.keyword("let")} a`, "let b"])
  expect(renderCode("if x", "py", open)).toEqual(["if x"])
})

test("keeps the text of any code", () => {
  const languages = fc.constantFrom("ts", "html", "bash", "python", "yaml", "css", "php", "diff", "c", "sql")
  const code = fc
    .array(
      fc.oneof(
        fc.constantFrom("<a href='x'>", "&amp;", '"', "`${", "/*", "*/", "#", "\n", "  ", "if (", "é漢"),
        fc.string({ maxLength: 10 }),
      ),
      { maxLength: 20 },
    )
    .map((pieces) => stripVTControlCharacters(pieces.join("")).replaceAll("\r", ""))
  fc.assert(
    fc.property(code, languages, fc.boolean(), (text, language, isOpen) => {
      const lines = renderCode(text, language, { theme, isOpen })
      expect(lines.map((line) => stripVTControlCharacters(line))).toEqual(text.split("\n"))
    }),
    { numRuns: 500 },
  )
})
