import * as fc from "fast-check"
import { describe, expect, test } from "vitest"
import { applyEdit } from "../../../src/tools/edit/apply-edit.ts"
import { findEdit, maxFuzzyLength } from "../../../src/tools/edit/find-edit.ts"
import { edit } from "./edit.ts"

function occurrencesOf(text: string, needle: string): number {
  let count = 0
  for (let at = text.indexOf(needle); at !== -1; at = text.indexOf(needle, at + 1)) count += 1
  return count
}

describe("exact", () => {
  test("replaces the one occurrence and takes newString literally", () => {
    expect(edit("const a = 1\n", "a = 1", "a = '$&$1$$'")).toEqual({
      strategy: "exact",
      text: "const a = '$&$1$$'\n",
    })
  })

  test("gives what String.replace gives for every text with one occurrence", () => {
    const piece = fc.string({ unit: fc.constantFrom("a", "b", " ", "\n", "$", "&", "é", "😀") })
    fc.assert(
      fc.property(
        piece,
        piece.filter((text) => text !== ""),
        piece,
        piece,
        (before, old, after, fresh) => {
          const text = before + old + after
          fc.pre(occurrencesOf(text, old) === 1)
          expect(edit(text, old, fresh)).toEqual({ strategy: "exact", text: text.replace(old, () => fresh) })
        },
      ),
    )
  })

  test("replaces every occurrence with replaceAll, as split and join do", () => {
    const piece = fc.string({ unit: fc.constantFrom("a", "b", "\n", "$"), minLength: 1 })
    fc.assert(
      fc.property(piece, piece, piece, (text, old, fresh) => {
        fc.pre(text.includes(old))
        expect(edit(text, old, fresh, true)).toEqual({ strategy: "exact", text: text.split(old).join(fresh) })
      }),
    )
  })

  test("refuses several occurrences and names their lines", () => {
    expect(edit("x\ny\nx\n", "x", "z")).toEqual({
      kind: "ambiguous",
      strategy: "exact",
      count: 2,
      lines: [1, 3],
    })
  })

  test("refuses occurrences that overlap", () => {
    expect(edit("aaa", "aa", "b")).toEqual({ kind: "ambiguous", strategy: "exact", count: 2, lines: [1] })
  })

  test("replaces occurrences that overlap from the first on", () => {
    expect(edit("aaa", "aa", "b", true)).toEqual({ strategy: "exact", text: "ba" })
  })

  test("wins over looser places elsewhere", () => {
    expect(edit("  x = 1  \n  x = 1;\n", "  x = 1;", "  x = 2;")).toMatchObject({
      strategy: "exact",
      text: "  x = 1  \n  x = 2;\n",
    })
  })
})

describe("line endings", () => {
  test("LF in oldString finds CRLF, and new lines become CRLF", () => {
    expect(edit("a\r\nb\r\nc\r\n", "a\nb\n", "a\nx\nb\n")).toEqual({
      strategy: "line-endings",
      text: "a\r\nx\r\nb\r\nc\r\n",
    })
  })

  test("CRLF in oldString finds LF, and new lines become LF", () => {
    expect(edit("a\nb\n", "a\r\nb", "a\r\nx\r\nb")).toEqual({ strategy: "line-endings", text: "a\nx\nb\n" })
  })

  test("new lines of an exact match take the file's ending", () => {
    expect(edit("a\r\nb\r\n", "b", "b\nc")).toEqual({ strategy: "exact", text: "a\r\nb\r\nc\r\n" })
  })

  test("in a mixed file they take the ending of the lines that are replaced", () => {
    const text = "a\r\nb\r\nc\nd\n"
    expect(edit(text, "b", "b\nx")).toMatchObject({ text: "a\r\nb\r\nx\r\nc\nd\n" })
    expect(edit(text, "c", "c\nx")).toMatchObject({ text: "a\r\nb\r\nc\nx\nd\n" })
  })

  test("a last line without ending takes the commonest one", () => {
    expect(edit("a\r\nb\r\nc\nd", "d", "d\ne")).toMatchObject({ text: "a\r\nb\r\nc\nd\r\ne" })
  })

  test("a file of one line takes what newString brings", () => {
    expect(edit("a", "a", "a\r\nb")).toMatchObject({ text: "a\r\nb" })
  })

  test("replaceAll reaches all places of a CRLF file", () => {
    expect(edit("a\r\nb\r\na\r\nb\r\n", "a\nb", "c\nd", true)).toEqual({
      strategy: "line-endings",
      text: "c\r\nd\r\nc\r\nd\r\n",
    })
  })
})

describe("white space", () => {
  test("at line ends", () => {
    expect(edit("if (x) {  \n  y()\t\n}\n", "if (x) {\n  y()\n}\n", "if (x) {\n  z()\n}\n")).toEqual({
      strategy: "normalized-lines",
      text: "if (x) {  \n  z()\n}\n",
    })
  })

  test("deeper indentation shifts the new lines and keeps the old", () => {
    const text = "class A {\n    run() {\n      go()\n    }\n}\n"
    expect(
      edit(text, "  run() {\n    go()\n  }\n", "  run() {\n    if (a) {\n      go()\n    }\n  }\n"),
    ).toEqual({
      strategy: "normalized-lines",
      text: "class A {\n    run() {\n      if (a) {\n        go()\n      }\n    }\n}\n",
    })
  })

  test("shallower indentation shifts back", () => {
    expect(
      edit("a:\n  b: 1\n  c: 2\n", "    b: 1\n    c: 2\n", "    b: 1\n    d:\n      e: 3\n    c: 2\n"),
    ).toEqual({
      strategy: "normalized-lines",
      text: "a:\n  b: 1\n  d:\n    e: 3\n  c: 2\n",
    })
  })

  test("spaces for tabs become tabs", () => {
    const text = "func a() {\n\tif b {\n\t\tc()\n\t}\n}\n"
    const result = edit(
      text,
      "    if b {\n        c()\n    }\n",
      "    if b {\n        for {\n            c()\n        }\n    }\n",
    )
    expect(result).toEqual({
      strategy: "normalized-lines",
      text: "func a() {\n\tif b {\n\t\tfor {\n\t\t\tc()\n\t\t}\n\t}\n}\n",
    })
  })

  test("two columns for four become four", () => {
    const text = "def a():\n    if b:\n        c()\n"
    expect(
      edit(text, "def a():\n  if b:\n    c()\n", "def a():\n  if b:\n    for x in y:\n      c()\n"),
    ).toEqual({
      strategy: "normalized-lines",
      text: "def a():\n    if b:\n        for x in y:\n            c()\n",
    })
  })

  test("an indentation that the old lines do not explain is refused", () => {
    // All indentation is lost in oldString: where a further line belongs cannot be known.
    const text = "if a:\n    b()\n    if c:\n        d()\n"
    expect(edit(text, "b()\nif c:\nd()", "b()\nif c:\nd()\ne()")).toEqual({
      strategy: "normalized-lines",
      unclear: "indentation",
    })
  })

  test("a line changed in its place keeps its indentation even then", () => {
    const text = "if a:\n    b()\n    if c:\n        d()\n"
    expect(edit(text, "b()\nif c:\nd()", "b()\nif c:\ne()")).toMatchObject({
      text: "if a:\n    b()\n    if c:\n        e()\n",
    })
  })

  test("a first line cut off after its indentation does not shift the others", () => {
    const text = "  if (a) {  \n    b()\n  }\n"
    expect(edit(text, "if (a) {\n    b()\n  }", "if (c) {\n    b()\n    d()\n  }")).toEqual({
      strategy: "normalized-lines",
      text: "  if (c) {\n    b()\n    d()\n  }\n",
    })
  })

  test("runs within lines, which the file keeps", () => {
    expect(edit("let  a   =  1\nlet b = 2\n", "let a = 1\n", "let a = 3\n")).toEqual({
      strategy: "normalized-lines",
      text: "let  a   =  3\nlet b = 2\n",
    })
  })

  test("a line is only found as a whole line", () => {
    expect(edit("max = 1\n", "  x = 1", "  x = 2")).toMatchObject({ kind: "missing" })
  })

  test("blank lines alone are found nowhere", () => {
    expect(edit("a\n \nb\n", "\n\t\n\n", "x")).toMatchObject({ kind: "missing" })
  })

  test("several places are refused, also with replaceAll", () => {
    const text = "\tgo()\nx\n\tgo()\n"
    const refused = { kind: "ambiguous", strategy: "normalized-lines", count: 2, lines: [1, 3] }
    expect(edit(text, "  go()\n", "  run()\n")).toEqual(refused)
    expect(edit(text, "  go()\n", "  run()\n", true)).toEqual(refused)
  })

  test("an empty newString removes whole lines", () => {
    expect(edit("a\n\tb\nc\n", "    b\n", "")).toMatchObject({ text: "a\nc\n" })
  })

  test("the last line keeps being without a line ending", () => {
    expect(edit("a\n\tb", "    b\n", "    c\n")).toMatchObject({ text: "a\n\tc" })
  })

  test("a newString that forgets the last line ending joins nothing", () => {
    expect(edit("a\n\tb\nc\n", "    b\n", "    x")).toMatchObject({ text: "a\n\tx\nc\n" })
  })

  test("kept lines of a mixed file keep their own endings", () => {
    expect(edit("\ta\r\n\tb\n\tc\r\n", " a\n b\n c\n", " a\n x\n b\n c\n")).toMatchObject({
      text: "\ta\r\n\tx\r\n\tb\n\tc\r\n",
    })
  })
})

describe("escapes", () => {
  test("are read in both strings", () => {
    expect(edit('a("x")\nb("y")\n', 'a(\\"x\\")\\nb(\\"y\\")', 'a(\\"x\\")\\nc(\\"z\\")')).toEqual({
      strategy: "escapes",
      text: 'a("x")\nc("z")\n',
    })
  })

  test("of quotes alone leave a backslash n as it is", () => {
    expect(edit('print("a\\n")\n', 'print(\\"a\\n\\")', 'print(\\"b\\n\\")')).toEqual({
      strategy: "escaped-quotes",
      text: 'print("b\\n")\n',
    })
  })

  const lines = (middle: string) => `function greet() {\n  const who = nobody\n${middle}\n}`
  test("are read in both strings where the lines are only alike, too", () => {
    const say = '  say("hello", who)'
    expect(
      edit(
        `${lines(say)}\n`,
        lines('  say(\\"hello\\", whom)'),
        lines('  say(\\"hello\\", whom)\n  say(\\"bye\\")'),
      ),
    ).toEqual({ strategy: "escapes + block-anchors", text: `${lines(`${say}\n  say("bye")`)}\n` })
  })

  test("that nobody can tell from the code's are not put into lines that are only alike", () => {
    const text = `${lines('  say("hello", who)')}\n`
    const old = lines('  say(\\"hello\\", who)')
    const newString = `${old}\n// That\\'s all`
    expect(findEdit(text, { oldString: old, newString, replaceAll: false })).toMatchObject({
      kind: "disputed",
      line: 1,
    })
  })

  test("stay where the file's lines that are only alike have them", () => {
    const say = '  say("a \\"quoted\\" word", who)'
    expect(
      edit(
        `${lines(say)}\n`,
        lines(say.replace("who", "whom")),
        lines(`${say.replace("who", "whom")}\n  say("\\"")`),
      ),
    ).toEqual({ strategy: "block-anchors", text: `${lines(`${say}\n  say("\\"")`)}\n` })
  })

  test("in newString stay when oldString needed none", () => {
    expect(edit("a\n", "a", 'b("\\n")')).toMatchObject({ text: 'b("\\n")\n' })
  })
})

describe("look-alikes", () => {
  test("the file's straight quotes stay straight", () => {
    expect(edit("say('it')\nx\n", "say(‘it’)", "say(‘that’)")).toEqual({
      strategy: "look-alikes",
      text: "say('that')\nx\n",
    })
  })

  test("typographic quotes of the file stay where nothing changes", () => {
    expect(
      edit("It’s a “test” – yes… ok\n", `It's a "test" - yes... ok`, `It's a "test" - no... ok`),
    ).toEqual({
      strategy: "look-alikes",
      text: "It’s a “test” – no… ok\n",
    })
  })

  test("no-break spaces count as spaces", () => {
    expect(edit("a\u00a0b\n", "a b", "a c")).toMatchObject({ strategy: "look-alikes", text: "a\u00a0c\n" })
  })

  test("a typographic character that the file has nowhere becomes plain", () => {
    expect(edit("a - 'b'\n", "a - ‘b’", "a - “b”")).toMatchObject({ text: 'a - "b"\n' })
  })

  test("one of a kind that old text does not show may be what the edit is about", () => {
    expect(edit("a - b\n", "a – b", "a – b “c”")).toMatchObject({ unclear: "look-alikes" })
    expect(edit("x(…, ...a)\n", "x(…, …a)", "x(…, …a, …b)")).toMatchObject({ unclear: "look-alikes" })
  })

  test("an ellipsis that leaves something out is no three dots because one that spreads is", () => {
    const file = "const a = [...rest]\nend\n"
    const old = "const a = […rest]\nend"
    expect(edit(file, old, `${old}\nconst b = […more]`)).toMatchObject({
      text: `${file}const b = [...more]\n`,
    })
    expect(edit(file, old, `${old}\nprint("…")`)).toMatchObject({ unclear: "look-alikes" })
  })

  test("one that spreads is not kept because the file's words have others", () => {
    const file = "// and so on…\nconst a = b - c\nend\n"
    const old = "const a = b – c\nend"
    expect(edit(file, old, `${old}\nf(…rest)`)).toMatchObject({ unclear: "look-alikes" })
  })

  test("half of an ellipsis is no match", () => {
    expect(edit("a…b\n", "a..", "x")).toMatchObject({ kind: "missing" })
  })

  test("line endings of unchanged and of new text", () => {
    expect(edit("a’s\r\nb\r\n", "a's\nb", "a's\nx\nb")).toMatchObject({ text: "a’s\r\nx\r\nb\r\n" })
  })
})

describe("block anchors", () => {
  const block = "start(config)\n  timeoutSeconds = 300\n  retryCount = 5\nfinish(config)\n"

  test("find a block whose middle is slightly wrong, and keep its unchanged lines as the file has them", () => {
    const old = "start(config)\n  timeoutSecond = 300\n  retryCount = 5\nfinish(config)\n"
    expect(edit(`${block}z\n`, old, old.replace("retryCount = 5", "retryCount = 6"))).toEqual({
      strategy: "block-anchors",
      text: `${block.replace("retryCount = 5", "retryCount = 6")}z\n`,
    })
  })

  test("refuse a middle that is too different", () => {
    const old = "start(config)\n  somethingElse()\n  retryCount = 5\nfinish(config)\n"
    expect(edit(block, old, "x\n")).toMatchObject({ kind: "missing" })
  })

  test("refuse two blocks that are near enough", () => {
    const old = block.replace("300", "30")
    expect(edit(`${block}${block.replace("300", "301")}`, old, "x\n")).toEqual({
      kind: "ambiguous",
      strategy: "block-anchors",
      count: 2,
      lines: [1, 5],
    })
  })

  test("need three lines", () => {
    expect(edit("a(config)\nb\n", "a(config)\nc\n", "x\n")).toMatchObject({ kind: "missing" })
  })
})

describe("missing", () => {
  test("shows the nearest text with its line", () => {
    const text = "import a\n\nfunction total(items) {\n  return items.length\n}\n"
    expect(edit(text, "function total(things) {\n  return things.size\n}", "x")).toEqual({
      kind: "missing",
      exactOnly: false,
      nearest: { line: 3, text: "function total(items) {\n  return items.length\n}" },
    })
  })

  test("shows nothing where nothing is near", () => {
    expect(edit("abc\n", "xyz", "x")).toEqual({ kind: "missing", exactOnly: false })
  })
})

describe("large texts", () => {
  const line = "some text that repeats itself again and again\n"
  const text = `${line.repeat(Math.ceil(50_000_000 / line.length))}the only one\r\n`

  test("an exact text of 50 MB is found and replaced", () => {
    const result = edit(text, "the only one", "another\none")
    expect(result).toMatchObject({ strategy: "exact" })
    expect("text" in result && result.text?.endsWith("again\nanother\r\none\r\n")).toBe(true)
  })

  test("only exact text is looked for above the limit", () => {
    expect(text.length).toBeGreaterThan(maxFuzzyLength)
    expect(edit(text, "  the only one  ", "x")).toEqual({ kind: "missing", exactOnly: true })
  })
})

describe("whatever matched, what lies outside stays", () => {
  const word = fc.constantFrom(
    "alpha",
    "beta(1)",
    "gamma = 'x'",
    "",
    "  delta",
    "\tepsilon",
    "zeta…",
    "eta – 2",
  )
  const eol = fc.constantFrom("\n", "\r\n", "\r")
  const lines = fc.array(fc.tuple(word, eol), { maxLength: 12 })
  const body = (parts: [string, string][]) => parts.map(([text, end]) => text + end).join("")
  const mangle = fc.constantFrom(
    (text: string) => text,
    (text: string) => text.replace(/\r\n?/g, "\n"),
    (text: string) => text.replace(/^[ \t]*/gm, "    "),
    (text: string) => text.replace(/…/g, "...").replace(/–/g, "-"),
    (text: string) => text.replace(/ /g, "  "),
  )

  test("in every text", () => {
    fc.assert(
      fc.property(lines, lines, lines, mangle, word, (before, target, after, change, fresh) => {
        const text = body(before) + body(target) + body(after)
        const oldString = change(body(target))
        fc.pre(oldString !== "")
        const newString = `${fresh}\nnew`
        const match = findEdit(text, { oldString, newString, replaceAll: false })
        if (match.kind !== "found") return
        const [span] = match.spans
        const merged = applyEdit({ text, match })
        if (!span || "unclear" in merged) return
        const result = merged.text
        expect(result.startsWith(text.slice(0, span.start))).toBe(true)
        expect(result.endsWith(text.slice(span.end))).toBe(true)
        expect(result.length).toBeGreaterThanOrEqual(span.start + text.length - span.end)
      }),
      { numRuns: 500 },
    )
  })
})

describe("another place or meaning that fits nearly as well", () => {
  test("places of which two share a line are both counted", () => {
    const file = "  a(\n    b \n    c \n    b \n    c \n  )\n  b\n  c\n"
    expect(edit(file, "    b\n    c", "    d")).toMatchObject({ kind: "ambiguous", lines: [2, 4, 7] })
    expect(edit("x \nx \nx \n", "x\nx", "y")).toMatchObject({ kind: "ambiguous", lines: [1, 2] })
  })

  test("text without its blank edges that stands elsewhere indented otherwise", () => {
    const file = "  type A {\n    b\n  }\n--\n    type A {\n      b\n    }\n"
    expect(edit(file, "\n  type A {\n    b\n  }\n\n", "\n  type A {\n    c\n  }\n\n")).toMatchObject({
      kind: "ambiguous",
      lines: [1, 5],
    })
  })

  test("a block elsewhere that is exact but for one line", () => {
    const file = "{\n  a: 1,\n  b: 3,\n  c: 4,\n}\nif {\n    a: 1,\n    b: 2,\n    c: 4,\n}\n"
    expect(edit(file, "  a: 1,\n  b: 2,\n  c: 4,", "  a: 1,\n  b: 5,\n  c: 4,")).toMatchObject({
      kind: "ambiguous",
      lines: [2, 7],
    })
  })

  const block = (name: string, ...more: string[]) => [
    `"${name}": {`,
    `  "v": 1,`,
    ...more,
    `  "l": "MIT"`,
    "},",
  ]
  test("lines left out where another block has all but one of those that are there", () => {
    const file = [...block("a", `  "x": 1,`), ...block("b", `  "x": 2,`, `  "y": 2,`)].join("\n")
    expect(edit(file, `"a": {\n  "v": 1,\n  ...\n},`, `"a": {\n  "v": 2,\n  ...\n},`)).toMatchObject({
      kind: "ambiguous",
      strategy: "left-out-lines",
    })
  })

  test("lines left out where the text goes on in two ways", () => {
    const file = "begin\n  a\nend\n  b\nend\n"
    expect(edit(file, "begin\n...\nend", "start\n...\nend")).toMatchObject({ kind: "ambiguous", lines: [1] })
  })

  test("new text that is already in the file is not added again", () => {
    const done = "call({\n  options: 1,\n  added: 1,\n  last: 2,\n})\n"
    const old = "call({\n  option: 1,\n  added: 1,\n  last: 2,\n})"
    expect(edit(done, old, old.replace("option:", "options:"))).toMatchObject({ kind: "done", line: 1 })
  })

  test("equal lines of which the file has two forms", () => {
    expect(edit("x  \ny\n", "x\ny", "x\nx\ny")).toMatchObject({ unclear: "equal-lines" })
    expect(edit("x  \ny\n", "x\ny", "x\nz\ny")).toMatchObject({ text: "x  \nz\ny\n" })
  })

  test("empty lines that the new text has others of", () => {
    expect(edit("a\n\nb\n", "\n\nb\n\n", "\nc\n\n")).toMatchObject({ kind: "disputed" })
    expect(edit("a\nb\n", "\n\nb\n\n", "\n\nc\n\n")).toMatchObject({ text: "a\nc\n" })
    expect(edit("a\nb\n", "\n\nb\n\n", "c")).toMatchObject({ text: "a\nc\n" })
  })

  test("an escaped line end between quotes of new text", () => {
    expect(edit("a\nb\n", "a\\nb", "a\\nc(`\\n`)")).toMatchObject({ kind: "missing" })
    expect(edit("a\nb\n", "a\\nb", "a\\nc(`x`)")).toMatchObject({ text: "a\nc(`x`)\n" })
  })

  test("escapes that old text lost, where new lines may have lost theirs", () => {
    const file = 'a = 1\nb = "say \\"so\\" to them all"\nc = 3\n'
    const old = 'a = 1\nb = "say "so" to them all"\nc = 3\n'
    expect(edit(file, old, `${old}d = "say "no""\n`)).toMatchObject({ kind: "disputed" })
  })
})
