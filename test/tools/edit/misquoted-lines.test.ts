import { expect, test } from "vitest"
import { edit } from "./edit.ts"

const file = `import one from "one"

function run(name) {
  const found = lookup(name)
  report(found)
  return found
}
`

test("one line that is kept and misquoted does not matter, also beside blank lines", () => {
  const old = "\nfunctions run(name) {\n  const found = lookup(name)\n  report(found)\n  return found"
  expect(edit(file, old, old.replace("report(found)", "report(found, 1)"))).toEqual({
    strategy: "block-anchors",
    text: file.replace("report(found)", "report(found, 1)"),
  })
})

test("a misquoted line that is replaced by several which have the file's word", () => {
  const old = "function run(name) {\n  consts found = lookup(name)\n  report(found)"
  const fresh =
    "function run(name) {\n  const place = where(name)\n  const found = lookup(place)\n  report(found)"
  expect(edit(file, old, fresh)).toMatchObject({
    text: file.replace(
      "  const found = lookup(name)",
      "  const place = where(name)\n  const found = lookup(place)",
    ),
  })
})

test("a misquoted line that goes altogether", () => {
  const old = "  const found = lookup(name)\n  reported(found)\n  return found"
  expect(edit(file, old, old.replace("  reported(found)\n", ""))).toMatchObject({
    text: file.replace("  report(found)\n", ""),
  })
})

test.each([
  ["the word that is misquoted is the one to be changed", "  reported(found)", "  reports(found)"],
  ["so it is, and lines are added", "  reported(found)", "  reports(found)\n  count()"],
  ["the new lines have the misquoted word too", "  reported(found)", "  go()\n  reported(name)"],
  ["the misquoted line is moved", "  reported(found)", "  count()\n  sum()\n  reported(found)!"],
])("refused: %s", (_, line, fresh) => {
  const old = "  const found = lookup(name)\n  report(found)\n  return found".replace("  report(found)", line)
  expect(edit(file, old, old.replace(line, fresh))).toMatchObject({ unclear: "misquoted" })
})

test("refused: no word of the line that goes is one of the file's", () => {
  const open = (line: string) => `    model: options.model,\n    ${line},\n    policies,\n`
  expect(edit(`{\n${open("agentsThird")}}\n`, open("agents"), open("definitions"))).toMatchObject({
    unclear: "misquoted",
  })
})

test.each([
  ["changed", "!c.test(lt.version)", "!satisfies(lt.version, String(c), options)"],
  ["kept", "      return false\n    }\n    count()", "      return false\n    }"],
])(
  "refused: the line that is %s has a word which the file has elsewhere, so it may be its sibling's",
  (_, fresh, was) => {
    const branch = (name: string) =>
      `    }\n    if (${name}.operator === "=" && !satisfies(${name}.version, String(c), options)) {\n      return false\n    }\n`
    const old = branch("lt")
    expect(edit(`const [lt, gt] = ends()\n${branch("gt")}`, old, old.replace(was, fresh))).toMatchObject({
      kind: "missing",
    })
  },
)

test("a slip in a word is one though the file has the word with other capitals", () => {
  const old = "  const Found = lookup(name)\n  report(found)\n  return found"
  const text = `${file}// Found by name.\n`
  expect(edit(text, `function run(name) {\n${old}`, `function run(name) {\n${old} + 1`)).toMatchObject({
    text: text.replace("return found", "return found + 1"),
  })
})

test("refused: another line is misquoted besides, so that the place may be another", () => {
  const twoWrong = "functions run(name) {\n  const found = lookup(name)\n  reports(found)\n  return found\n}"
  const block = file.slice(file.indexOf("function"))
  expect(
    edit(
      block,
      twoWrong.replace("functions", "function"),
      twoWrong.replace("functions", "function").replace("  reports(found)\n", ""),
    ),
  ).toHaveProperty("text")
  const old = `head()\n${twoWrong}`
  expect(edit(`head()\n${block}`, old, old.replace("  reports(found)\n", ""))).toMatchObject({
    unclear: "misquoted",
  })
})

test("at an edge two lines do not tell the place, nor does a word that is merely alike", () => {
  const hex = "const hexNumber = {\n  find: true,\n  test: 1,\n  read: 2,\n}\n"
  const missing = { kind: "missing" }
  const octal = "const octNumber = {\n  find: true,\n  test: 1,\n  read: 2,\n}"
  expect(edit(hex, octal, octal.replace("1", "8"))).toMatchObject(missing)
  const short = "const hexNumbers = {\n  find: true,\n  test: 1,"
  expect(edit(hex, short, short.replace("1", "8"))).toMatchObject(missing)
  const long = "const hexNumbers = {\n  find: true,\n  test: 1,\n  read: 2,"
  expect(edit(hex, long, long.replace("1", "8"))).toMatchObject({ text: hex.replace("1", "8") })
})

test("another place that is exact but for one line makes it ambiguous, however unlike that line is", () => {
  const old = "  const found = lookup(name)\n  reports(found)\n  return found"
  const twice = `${file}  const found = lookup(name)\n  go()\n  return found\n`
  expect(edit(twice, old, old.replace("return found", "return true"))).toMatchObject({ kind: "ambiguous" })
})

test("numbers of the text's own are no line numbers, where old text has both", () => {
  const keys = '  6: "six",\n  8: "eight",\n'
  const numbered = '    1→  6: "six",\n    2→  8: "eight",\n'
  expect(edit(keys, numbered, keys.replace("eight", "acht"))).not.toHaveProperty("text")
})
