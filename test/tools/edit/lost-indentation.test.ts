import { describe, expect, test } from "vitest"
import { lineStructure } from "../../../src/tools/edit/line-structure.ts"
import { edit } from "./edit.ts"

const file = `export function run(name: string) {
  const found = lookup(name)
  for (const one of found) {
    report(one, {
      deep: true,
    })
  }
  return found
}
`

/** Both texts without any indentation. */
function lost(text: string, ...changes: [old: string, fresh: string][]) {
  const fresh = changes.reduce((all, [old, wanted]) => all.replace(old, wanted), text)
  const flat = (lines: string) => lines.replace(/^[ \t]+/gm, "")
  const result = edit(text, flat(text), flat(fresh))
  return "text" in result ? result.text === fresh || result.text : result
}

describe("where a model wrote no indentation at all, new lines get it from what stands around them", () => {
  test.each([
    ["between two lines of one level", "  return found", "  count += 1\n  return found"],
    [
      "after an opening bracket",
      "    report(one, {",
      "    if (one.isOld) {\n      continue\n    }\n    report(one, {",
    ],
    ["before a closing one", "    })\n", "    })\n    last = one\n"],
    [
      "on two levels at once",
      "  return found",
      "  save({\n    found,\n    all: [\n      1,\n    ],\n  })\n  return found",
    ],
    [
      "a value on a line of its own",
      "  const found = lookup(name)",
      "  const found =\n    lookup(name) // is it (there?\n  go()",
    ],
    ["a comment of several lines", "  return found", "  /**\n   * Why (so\n   */\n  return found"],
    ["one changed in its place", "      deep: true,", "      deep: false,\n      wide: /[(]/.test(name),"],
    ["none but what goes", "  return found\n", ""],
  ])("%s", (_, old, fresh) => {
    expect(lost(file, [old, fresh])).toBe(true)
    const withTabs = (text: string) =>
      text.replace(/^ +/gm, (spaces) => "\t".repeat(spaces.length / 2) + " ".repeat(spaces.length % 2))
    const tabbed = withTabs(file)
    expect(lost(tabbed, [withTabs(old), withTabs(fresh)])).toBe(true)
  })

  test.each([
    ["a line that goes on by a sign at its end", "  return found", "  const a = b &&\n    c\n  return found"],
    [
      "one that goes on by a sign at its beginning",
      "  return found",
      "  const a = b\n    ? c\n    : d\n  return found",
    ],
    ["a head without brackets", "  return found", "  if (found)\n    go()\n  return found"],
    ["a block that is opened and not closed", "  return found", "  if (found) {\n  return found"],
    ["a text of several lines", "  return found", "  say(`a\n    b`)\n  return found"],
    ["code that is no longer used", "  return found", "//  go()\n  return found"],
    ["a line after the last that the file has", "  return found\n}\n", "  return found\n}\nrun()\n"],
  ])("refused: %s", (_, old, fresh) => {
    expect(lost(file, [old, fresh])).toMatchObject({ unclear: "indentation" })
  })

  test("refused: a line after the body of a head without brackets, which may be in it or behind it", () => {
    const branch =
      "if (ready) {\n    if (!found)\n        return undefined\n    if (wide) {\n        use(found)\n    }\n}\n"
    const flat = branch.replace(/^ +/gm, "")
    expect(edit(branch, flat, flat.replace("if (wide) {", "const place = where(found)"))).toMatchObject({
      unclear: "indentation",
    })
  })

  test("in a language without brackets only lines between two of one level are clear", () => {
    const python = "def run(name):\n    found = lookup(name)\n    if found:\n        go()\n    return found\n"
    expect(lost(python, ["    found =", "    log(name)\n    found ="])).toMatchObject({
      unclear: "indentation",
    })
    const flat = python.replace("    found =", "    # why\n    found =")
    expect(lost(flat, ["    found =", "    log(name)\n    found ="])).toBe(true)
    expect(lost(flat, ["    found =", "    if name:\n        log(name)\n    found ="])).toMatchObject({
      unclear: "indentation",
    })
    expect(lost(flat, ["    return", "    end()\n    return"])).toMatchObject({ unclear: "indentation" })
  })
})

test("where new lines step as the old ones do, and the file otherwise, one that is as in the file was put deeper", () => {
  const wide = "const make = function (mod) {\n    return mod ? mod : { mod }\n}\nmake(1)\n"
  const narrow = "const make = function (mod) {\n  return mod ? mod : { mod }\n}\n"
  const fresh = narrow.replace(
    "  return mod ? mod : { mod }",
    "  if (ready) {\n    return mod ? mod : { mod }\n  }",
  )
  expect(edit(wide, narrow, fresh)).toMatchObject({ unclear: "indentation" })
})

test("where a line is moved, another that comes to stand as in the file says nothing of the frame", () => {
  const own = "const a = z\n  .of(b)\n  .say(\n    'what',\n  )\n\nnext()\n"
  const wide = "const a = z\n    .of(b)\n    .say(\n        'what',\n    )\n"
  expect(edit(own, wide, "const a = c.say(\n    'what',\n)\n")).toMatchObject({ unclear: "indentation" })
})

test.each([
  ["} else if (a) {", { closes: 1, opens: 1, goesOn: false }],
  ["}), [", { closes: 2, opens: 1, goesOn: false }],
  ["const a = (b) =>", { closes: 0, opens: 0, goesOn: true }],
  ["const a = '(' + \"{\", b = /[(]/ // (", { closes: 0, opens: 0, goesOn: false }],
  ["a, b)", undefined],
  ["if (a <=", { closes: 0, opens: 1, goesOn: false }],
  ["it's", undefined],
  ["end", undefined],
  ["- item", undefined],
])("reads %s", (text, structure) => {
  expect(lineStructure(text)).toEqual(structure)
})
