import * as fc from "fast-check"
import { describe, expect, test } from "vitest"
import { applyEdit } from "../../../src/tools/edit/apply-edit.ts"
import { findEdit, maxFuzzyLength } from "../../../src/tools/edit/find-edit.ts"
import { runs } from "../../runs.ts"
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

  test("equals String.replace for every text with one occurrence", () => {
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

  test("rejects several occurrences and names their lines", () => {
    expect(edit("x\ny\nx\n", "x", "z")).toEqual({
      kind: "ambiguous",
      strategy: "exact",
      count: 2,
      lines: [1, 3],
    })
  })

  test("rejects overlapping occurrences", () => {
    expect(edit("aaa", "aa", "b")).toEqual({ kind: "ambiguous", strategy: "exact", count: 2, lines: [1, 1] })
  })

  test("replaces overlapping occurrences from the first on", () => {
    expect(edit("aaa", "aa", "b", true)).toEqual({ strategy: "exact", text: "ba" })
  })

  test("wins over looser matches elsewhere", () => {
    expect(edit("  x = 1  \n  x = 1;\n", "  x = 1;", "  x = 2;")).toMatchObject({
      strategy: "exact",
      text: "  x = 1  \n  x = 2;\n",
    })
  })
})

describe("line endings", () => {
  test("matches CRLF with LF, and writes new lines with CRLF", () => {
    expect(edit("a\r\nb\r\nc\r\n", "a\nb\n", "a\nx\nb\n")).toEqual({
      strategy: "line-endings",
      text: "a\r\nx\r\nb\r\nc\r\n",
    })
  })

  test("matches LF with CRLF, and writes new lines with LF", () => {
    expect(edit("a\nb\n", "a\r\nb", "a\r\nx\r\nb")).toEqual({ strategy: "line-endings", text: "a\nx\nb\n" })
  })

  test("writes new lines of an exact match with the file's ending", () => {
    expect(edit("a\r\nb\r\n", "b", "b\nc")).toEqual({ strategy: "exact", text: "a\r\nb\r\nc\r\n" })
  })

  test("uses the ending of the replaced lines in a mixed file", () => {
    const text = "a\r\nb\r\nc\nd\n"
    expect(edit(text, "b", "b\nx")).toMatchObject({ text: "a\r\nb\r\nx\r\nc\nd\n" })
    expect(edit(text, "c", "c\nx")).toMatchObject({ text: "a\r\nb\r\nc\nx\nd\n" })
  })

  test("uses the most frequent ending after a last line without one", () => {
    expect(edit("a\r\nb\r\nc\nd", "d", "d\ne")).toMatchObject({ text: "a\r\nb\r\nc\nd\r\ne" })
  })

  test("uses the ending of newString in a file of one line", () => {
    expect(edit("a", "a", "a\r\nb")).toMatchObject({ text: "a\r\nb" })
  })

  test("replaces every occurrence in a CRLF file", () => {
    expect(edit("a\r\nb\r\na\r\nb\r\n", "a\nb", "c\nd", true)).toEqual({
      strategy: "line-endings",
      text: "c\r\nd\r\nc\r\nd\r\n",
    })
  })
})

describe("white space", () => {
  test("is ignored at line ends", () => {
    expect(edit("if (x) {  \n  y()\t\n}\n", "if (x) {\n  y()\n}\n", "if (x) {\n  z()\n}\n")).toEqual({
      strategy: "normalized-lines",
      text: "if (x) {  \n  z()\n}\n",
    })
  })

  test("shifts new lines to a deeper indentation and keeps old lines", () => {
    const text = "class A {\n    run() {\n      go()\n    }\n}\n"
    expect(
      edit(text, "  run() {\n    go()\n  }\n", "  run() {\n    if (a) {\n      go()\n    }\n  }\n"),
    ).toEqual({
      strategy: "normalized-lines",
      text: "class A {\n    run() {\n      if (a) {\n        go()\n      }\n    }\n}\n",
    })
  })

  test("shifts new lines to a shallower indentation", () => {
    expect(
      edit("a:\n  b: 1\n  c: 2\n", "    b: 1\n    c: 2\n", "    b: 1\n    d:\n      e: 3\n    c: 2\n"),
    ).toEqual({
      strategy: "normalized-lines",
      text: "a:\n  b: 1\n  d:\n    e: 3\n  c: 2\n",
    })
  })

  test("turns spaces into the file's tabs", () => {
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

  test("scales levels of two columns to four", () => {
    const text = "def a():\n    if b:\n        c()\n"
    expect(
      edit(text, "def a():\n  if b:\n    c()\n", "def a():\n  if b:\n    for x in y:\n      c()\n"),
    ).toEqual({
      strategy: "normalized-lines",
      text: "def a():\n    if b:\n        for x in y:\n            c()\n",
    })
  })

  test("rejects an indentation that the old lines do not determine", () => {
    // oldString has no indentation, so the indentation of another line is unknown.
    const text = "if a:\n    b()\n    if c:\n        d()\n"
    expect(edit(text, "b()\nif c:\nd()", "b()\nif c:\nd()\ne()")).toEqual({
      strategy: "normalized-lines",
      unclear: "indentation",
    })
  })

  test("keeps the indentation of a line that is changed in place", () => {
    const text = "if a:\n    b()\n    if c:\n        d()\n"
    expect(edit(text, "b()\nif c:\nd()", "b()\nif c:\ne()")).toMatchObject({
      text: "if a:\n    b()\n    if c:\n        e()\n",
    })
  })

  test("does not shift lines after a first line without its indentation", () => {
    const text = "  if (a) {  \n    b()\n  }\n"
    expect(edit(text, "if (a) {\n    b()\n  }", "if (c) {\n    b()\n    d()\n  }")).toEqual({
      strategy: "normalized-lines",
      text: "  if (c) {\n    b()\n    d()\n  }\n",
    })
  })

  test("ignores and keeps runs of spaces within lines", () => {
    expect(edit("let  a   =  1\nlet b = 2\n", "let a = 1\n", "let a = 3\n")).toEqual({
      strategy: "normalized-lines",
      text: "let  a   =  3\nlet b = 2\n",
    })
  })

  test("matches only whole lines", () => {
    expect(edit("max = 1\n", "  x = 1", "  x = 2")).toMatchObject({ kind: "missing" })
  })

  test("does not match blank lines alone", () => {
    expect(edit("a\n \nb\n", "\n\t\n\n", "x")).toMatchObject({ kind: "missing" })
  })

  test("rejects several matches, also with replaceAll", () => {
    const text = "\tgo()\nx\n\tgo()\n"
    const refused = { kind: "ambiguous", strategy: "normalized-lines", count: 2, lines: [1, 3] }
    expect(edit(text, "  go()\n", "  run()\n")).toEqual(refused)
    expect(edit(text, "  go()\n", "  run()\n", true)).toEqual(refused)
  })

  test("an empty newString removes whole lines", () => {
    expect(edit("a\n\tb\nc\n", "    b\n", "")).toMatchObject({ text: "a\nc\n" })
  })

  test("keeps a last line without line ending", () => {
    expect(edit("a\n\tb", "    b\n", "    c\n")).toMatchObject({ text: "a\n\tc" })
  })

  test("does not join lines if newString lacks the last line ending", () => {
    expect(edit("a\n\tb\nc\n", "    b\n", "    x")).toMatchObject({ text: "a\n\tx\nc\n" })
  })

  test("keeps the endings of kept lines in a mixed file", () => {
    expect(edit("\ta\r\n\tb\n\tc\r\n", " a\n b\n c\n", " a\n x\n b\n c\n")).toMatchObject({
      text: "\ta\r\n\tx\r\n\tb\n\tc\r\n",
    })
  })
})

describe("escapes", () => {
  test("are removed from both strings", () => {
    expect(edit('a("x")\nb("y")\n', 'a(\\"x\\")\\nb(\\"y\\")', 'a(\\"x\\")\\nc(\\"z\\")')).toEqual({
      strategy: "escapes",
      text: 'a("x")\nc("z")\n',
    })
  })

  test("of quotes do not affect a backslash n", () => {
    expect(edit('print("a\\n")\n', 'print(\\"a\\n\\")', 'print(\\"b\\n\\")')).toEqual({
      strategy: "escaped-quotes",
      text: 'print("b\\n")\n',
    })
  })

  test("of line ends and tabs are removed, although quotes have none", () => {
    const file = 'if (a) {\n\tlog("x")\n\treturn "y"\n}\n'
    expect(edit(file, '\\tlog("x")\\n\\treturn "y"', '\\tlog("z")\\n\\n\\treturn')).toEqual({
      strategy: "escaped-line-ends",
      text: 'if (a) {\n\tlog("z")\n\n\treturn\n}\n',
    })
  })

  test("of line ends and tabs are removed outside strings that have the same escapes in the file", () => {
    const file = 'log("a\\n")\n\tlog("b\\t")\nend\n'
    expect(edit(file, 'log("a\\n")\\n\\tlog("b\\t")', 'log("a\\n")\\n\\tlast("b\\t")')).toEqual({
      strategy: "escaped-line-ends-outside-strings",
      text: 'log("a\\n")\n\tlast("b\\t")\nend\n',
    })
    expect(edit(file, 'log("a\\n")\\n\\tlog("b\\t")', 'log("new\\n")\\n\\tlog("b\\t")')).toMatchObject({
      kind: "missing",
    })
  })

  test("of line ends and tabs are kept where the file has them, or real line ends are in the texts", () => {
    expect(edit('x = "a\\tb"\n', "a\\tb", "a\\tc")).toEqual({ strategy: "exact", text: 'x = "a\\tc"\n' })
    expect(edit("a\n\tb\nc\n", "a\\n\\tb\nc", "a\\n\\tx\nc")).toMatchObject({ kind: "missing" })
  })

  test("of line ends and tabs are refused if several places match", () => {
    expect(edit("\ta\n\tb\n\ta\n\tb\n", "\\ta\\n\\tb", "\\tc")).toMatchObject({ kind: "ambiguous" })
  })

  const lines = (middle: string) => `function greet() {\n  const who = guest\n${middle}\n}`
  test("are removed from both strings of similar lines, too", () => {
    const say = '  say("hello", who)'
    expect(
      edit(
        `${lines(say)}\n`,
        lines('  say(\\"hello\\", whom)'),
        lines('  say(\\"hello\\", whom)\n  say(\\"bye\\")'),
      ),
    ).toEqual({ strategy: "escapes + block-anchors", text: `${lines(`${say}\n  say("bye")`)}\n` })
  })

  test("that may belong to the code are rejected in similar lines", () => {
    const text = `${lines('  say("hello", who)')}\n`
    const old = lines('  say(\\"hello\\", who)')
    const newString = `${old}\n// That\\'s all`
    expect(findEdit(text, { oldString: old, newString, replaceAll: false })).toMatchObject({
      kind: "disputed",
      line: 1,
    })
  })

  test("are kept if similar lines of the file have them", () => {
    const say = '  say("a \\"quoted\\" word", who)'
    expect(
      edit(
        `${lines(say)}\n`,
        lines(say.replace("who", "whom")),
        lines(`${say.replace("who", "whom")}\n  say("\\"")`),
      ),
    ).toEqual({ strategy: "block-anchors", text: `${lines(`${say}\n  say("\\"")`)}\n` })
  })

  test("are kept in newString if oldString matches as given", () => {
    expect(edit("a\n", "a", 'b("\\n")')).toMatchObject({ text: 'b("\\n")\n' })
  })
})

describe("look-alikes", () => {
  test("keeps the file's straight quotes", () => {
    expect(edit("say('it')\nx\n", "say(‘it’)", "say(‘that’)")).toEqual({
      strategy: "look-alikes",
      text: "say('that')\nx\n",
    })
  })

  test("keeps unchanged typographic quotes of the file", () => {
    expect(
      edit("It’s a “test” – yes… ok\n", `It's a "test" - yes... ok`, `It's a "test" - no... ok`),
    ).toEqual({
      strategy: "look-alikes",
      text: "It’s a “test” – no… ok\n",
    })
  })

  test("treats no-break spaces as spaces", () => {
    expect(edit("a\u00a0b\n", "a b", "a c")).toMatchObject({ strategy: "look-alikes", text: "a\u00a0c\n" })
  })

  test("replaces a typographic character that the file does not use", () => {
    expect(edit("a - 'b'\n", "a - ‘b’", "a - “b”")).toMatchObject({ text: 'a - "b"\n' })
  })

  test("rejects a new look-alike of another kind", () => {
    expect(edit("a - b\n", "a – b", "a – b “c”")).toMatchObject({ unclear: "look-alikes" })
    expect(edit("x(…, ...a)\n", "x(…, …a)", "x(…, …a, …b)")).toMatchObject({ unclear: "look-alikes" })
  })

  test("does not confuse an ellipsis for an omission with a spread", () => {
    const file = "const a = [...rest]\nend\n"
    const old = "const a = […rest]\nend"
    expect(edit(file, old, `${old}\nconst b = […more]`)).toMatchObject({
      text: `${file}const b = [...more]\n`,
    })
    expect(edit(file, old, `${old}\nprint("…")`)).toMatchObject({ unclear: "look-alikes" })
  })

  test("does not keep an ellipsis for a spread because the file has others", () => {
    const file = "// and so on…\nconst a = b - c\nend\n"
    const old = "const a = b – c\nend"
    expect(edit(file, old, `${old}\nf(…rest)`)).toMatchObject({ unclear: "look-alikes" })
  })

  test("rejects a new look-alike of a confused kind that the file has elsewhere", () => {
    const file = '// the ‘other’ form\nsay("it\'s")\n'
    const old = "say(“it’s”)"
    expect(edit(file, old, `${old}\nsay(‘more”)`)).toMatchObject({ unclear: "look-alikes" })
  })

  test("does not match half of an ellipsis", () => {
    expect(edit("a…b\n", "a..", "x")).toMatchObject({ kind: "missing" })
  })

  test("keeps line endings and uses them for new text", () => {
    expect(edit("a’s\r\nb\r\n", "a's\nb", "a's\nx\nb")).toMatchObject({ text: "a’s\r\nx\r\nb\r\n" })
  })
})

describe("block anchors", () => {
  const block = "start(config)\n  timeoutSeconds = 300\n  retryCount = 5\nfinish(config)\n"

  test("find a block with a slightly wrong middle, and keep unchanged lines", () => {
    const old = "start(config)\n  timeoutSecond = 300\n  retryCount = 5\nfinish(config)\n"
    expect(edit(`${block}z\n`, old, old.replace("retryCount = 5", "retryCount = 6"))).toEqual({
      strategy: "block-anchors",
      text: `${block.replace("retryCount = 5", "retryCount = 6")}z\n`,
    })
  })

  test("reject a middle that is too different", () => {
    const old = "start(config)\n  somethingElse()\n  retryCount = 5\nfinish(config)\n"
    expect(edit(block, old, "x\n")).toMatchObject({ kind: "missing" })
  })

  test("reject two similar blocks", () => {
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
  test("shows the most similar text with its line", () => {
    const text = "import a\n\nfunction total(items) {\n  return items.length\n}\n"
    expect(edit(text, "function total(things) {\n  return things.size\n}", "x")).toEqual({
      kind: "missing",
      exactOnly: false,
      nearest: { line: 3, text: "function total(items) {\n  return items.length\n}" },
    })
  })

  test("shows nothing if no text is similar", () => {
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

  test("only literal strategies are used above the limit", () => {
    expect(text.length).toBeGreaterThan(maxFuzzyLength)
    expect(edit(text, "  the only one  ", "x")).toEqual({ kind: "missing", exactOnly: true })
  })
})

describe("text outside the match", () => {
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

  test("never changes", () => {
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
      { numRuns: runs(500) },
    )
  })
})

describe("rejects an ambiguous match:", () => {
  test("overlapping matches", () => {
    const file = "  a(\n    b \n    c \n    b \n    c \n  )\n  b\n  c\n"
    expect(edit(file, "    b\n    c", "    d")).toMatchObject({ kind: "ambiguous", lines: [2, 4, 7] })
    expect(edit("x \nx \nx \n", "x\nx", "y")).toMatchObject({ kind: "ambiguous", lines: [1, 2] })
  })

  test("text without its blank edges, and the same text with other indentation", () => {
    const file = "  type A {\n    b\n  }\n--\n    type A {\n      b\n    }\n"
    expect(edit(file, "\n  type A {\n    b\n  }\n\n", "\n  type A {\n    c\n  }\n\n")).toMatchObject({
      kind: "ambiguous",
      lines: [1, 5],
    })
  })

  test("a block elsewhere that is equal except for one line", () => {
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
  test("left out lines, and another block with all quoted lines but one", () => {
    const file = [...block("a", `  "x": 1,`), ...block("b", `  "x": 2,`, `  "y": 2,`)].join("\n")
    expect(edit(file, `"a": {\n  "v": 1,\n  ...\n},`, `"a": {\n  "v": 2,\n  ...\n},`)).toMatchObject({
      kind: "ambiguous",
      strategy: "left-out-lines",
    })
  })

  test("left out lines with two possible ends", () => {
    const file = "begin\n  a\nend\n  b\nend\n"
    expect(edit(file, "begin\n...\nend", "start\n...\nend")).toMatchObject({
      kind: "ambiguous",
      lines: [1, 1],
    })
  })

  test("new text that is already in the file is not added again", () => {
    const done = "call({\n  options: 1,\n  added: 1,\n  last: 2,\n})\n"
    const old = "call({\n  option: 1,\n  added: 1,\n  last: 2,\n})"
    expect(edit(done, old, old.replace("option:", "options:"))).toMatchObject({ kind: "done", line: 1 })
  })

  test("equal lines with two forms in the file", () => {
    expect(edit("x  \ny\n", "x\ny", "x\nx\ny")).toMatchObject({ unclear: "equal-lines" })
    expect(edit("x  \ny\n", "x\ny", "x\nz\ny")).toMatchObject({ text: "x  \nz\ny\n" })
  })

  test("blank edge lines that the new text changes", () => {
    expect(edit("a\n\nb\n", "\n\nb\n\n", "\nc\n\n")).toMatchObject({ kind: "disputed" })
    expect(edit("a\nb\n", "\n\nb\n\n", "\n\nc\n\n")).toMatchObject({ text: "a\nc\n" })
    expect(edit("a\nb\n", "\n\nb\n\n", "c")).toMatchObject({ text: "a\nc\n" })
  })

  test("an escaped line end between quotes", () => {
    expect(edit("a\nb\n", "a\\nb", "a\\nc(`\\n`)")).toMatchObject({ kind: "missing" })
    expect(edit("a\nb\n", "a\\nb", "a\\nc(`x`)")).toMatchObject({ text: "a\nc(`x`)\n" })
  })

  test("escapes that the old text lost", () => {
    const file = 'a = 1\nb = "say \\"so\\" to them all"\nc = 3\n'
    const old = 'a = 1\nb = "say "so" to them all"\nc = 3\n'
    expect(edit(file, old, `${old}d = "say "no""\n`)).toMatchObject({ kind: "disputed" })
  })
})
