import { expect, test } from "vitest"
import { edit } from "./edit.ts"

const file = `import one from "one"

function run(name) {
  const found = lookup(name)
  report(found)
  return found
}
`

test("finds a block in which one kept line is misquoted", () => {
  const old = "function run(name) {\n  const found = lookup(name)\n  reports(found)\n  return found"
  expect(edit(file, old, old.replace("lookup(name)", "lookup(name, 1)"))).toEqual({
    strategy: "block-anchors",
    text: file.replace("lookup(name)", "lookup(name, 1)"),
  })
})

test("rejects a block whose first or last line is misquoted", () => {
  const old = "functions run(name) {\n  const found = lookup(name)\n  report(found)\n  return found"
  expect(edit(file, old, old.replace("report(found)", "report(found, 1)"))).toMatchObject({ kind: "missing" })
})

test("replaces a misquoted line by several that have the file's word", () => {
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

test("removes a misquoted line", () => {
  const old = "  const found = lookup(name)\n  reported(found)\n  return found"
  expect(edit(file, old, old.replace("  reported(found)\n", ""))).toMatchObject({
    text: file.replace("  report(found)\n", ""),
  })
})

test.each([
  ["the edit changes the misquoted word", "  reported(found)", "  reports(found)"],
  ["the edit changes the misquoted word and adds lines", "  reported(found)", "  reports(found)\n  count()"],
  ["the new lines contain the misquoted word", "  reported(found)", "  go()\n  reported(name)"],
  ["the edit moves the misquoted line", "  reported(found)", "  count()\n  sum()\n  reported(found)!"],
])("rejects the edit if %s", (_, line, fresh) => {
  const old = "  const found = lookup(name)\n  report(found)\n  return found".replace("  report(found)", line)
  expect(edit(file, old, old.replace(line, fresh))).toMatchObject({ unclear: "misquoted" })
})

test("rejects the removal of a misquoted line without a word of the file's line", () => {
  const open = (line: string) => `    model: options.model,\n    ${line},\n    policies,\n`
  const result = edit(`{\n${open("agentsThird")}}\n`, open("agents"), open("definitions"))
  expect(result).not.toHaveProperty("text")
})

test.each([
  ["changed", "!c.test(lt.version)", "!satisfies(lt.version, String(c), options)"],
  ["kept", "      return false\n    }\n    count()", "      return false\n    }"],
])("rejects a block if a %s line has a word that is elsewhere in the file", (_, fresh, was) => {
  const branch = (name: string) =>
    `    }\n    if (${name}.operator === "=" && !satisfies(${name}.version, String(c), options)) {\n      return false\n    }\n`
  const old = branch("lt")
  expect(edit(`const [lt, gt] = ends()\n${branch("gt")}`, old, old.replace(was, fresh))).toMatchObject({
    kind: "missing",
  })
})

test("ignores case when it looks for a misquoted word in the file", () => {
  const old = "  const Found = lookup(name)\n  report(found)\n  return found"
  const text = `${file}// Found by name.\n`
  expect(edit(text, `function run(name) {\n${old}`, `function run(name) {\n${old} + 1`)).toMatchObject({
    text: text.replace("return found", "return found + 1"),
  })
})

test("rejects the removal of a misquoted line if another line is misquoted too", () => {
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

test("is ambiguous if another block is equal except for one line", () => {
  const old = "  const found = lookup(name)\n  reports(found)\n  return found"
  const twice = `${file}  const found = lookup(name)\n  go()\n  return found\n`
  expect(edit(twice, old, old.replace("return found", "return true"))).toMatchObject({ kind: "ambiguous" })
})

test("keeps numbers that belong to the text if the old text also has line numbers", () => {
  const keys = '  6: "six",\n  8: "eight",\n'
  const numbered = '    1→  6: "six",\n    2→  8: "eight",\n'
  expect(edit(keys, numbered, keys.replace("eight", "acht"))).not.toHaveProperty("text")
})
