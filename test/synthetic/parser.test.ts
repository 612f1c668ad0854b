import fc from "fast-check"
import { describe, expect, test } from "vitest"
import type { DialectName } from "../../src/synthetic/dialect.ts"
import { createCallParser } from "../../src/synthetic/parser.ts"
import { isComplete, runs } from "../runs.ts"
import { corpora, expected, readPieces, summary } from "./corpus.ts"

const { mentions, ...formats } = corpora
const corpus = Object.values(formats).flat()
const corpusTools = corpora.synthetic[0]?.tools ?? []

const withPlaces = corpus.map((entry) => [`${entry.group}: ${entry.about}`, entry] as const)

function parserOf(dialect: DialectName) {
  return createCallParser({ tools: corpusTools, dialect })
}

describe("parser: corpus texts", () => {
  test("cover every dialect, with and without calls", () => {
    expect(corpora.synthetic.length).toBeGreaterThan(150)
    expect(corpora["model-texts"].length).toBeGreaterThan(200)
    expect(new Set(corpus.map(({ dialect }) => dialect)).size).toBe(6)
    expect(corpus.filter(({ calls }) => calls.length === 0).length).toBeGreaterThan(50)
  })

  test.each(withPlaces)("%s", (_, entry) => {
    expect(summary(readPieces(entry, [entry.text]))).toEqual(expected(entry))
  })

  test.each(Object.entries(formats))(
    "of %s are read the same when split in two at any position",
    (_, cases) => {
      for (const entry of cases) {
        // CI tries every position, other runs every eighth one.
        const step = isComplete ? 1 : 8
        for (let at = Math.floor(Math.random() * step); at <= entry.text.length; at += step) {
          const read = summary(readPieces(entry, [entry.text.slice(0, at), entry.text.slice(at)]))
          expect(read, `${entry.group}: ${entry.about}, cut at ${at}`).toEqual(expected(entry))
        }
      }
    },
    120_000,
  )

  test("are read the same character by character and split at random positions", () => {
    for (const entry of corpus) {
      const read = summary(readPieces(entry, entry.text.split("")))
      expect(read, `${entry.group}: ${entry.about}`).toEqual(expected(entry))
    }
    fc.assert(
      fc.property(fc.constantFrom(...corpus), fc.array(fc.nat(), { maxLength: 12 }), (entry, places) => {
        const cuts = [0, ...places.map((place) => place % (entry.text.length + 1)), entry.text.length]
        cuts.sort((a, b) => a - b)
        const pieces = cuts.slice(1).map((end, index) => entry.text.slice(cuts[index], end))
        expect(summary(readPieces(entry, pieces))).toEqual(expected(entry))
      }),
      { numRuns: runs(2_000) },
    )
  })

  test("stream each call's input in pieces after one announcement", () => {
    for (const entry of corpus) {
      let open: string | undefined
      for (const event of readPieces(entry, entry.text.split(""))) {
        if (event.type === "call-start") open = ""
        else if (event.type === "call-delta") open += event.delta
        else if (event.type === "call") {
          expect(open, entry.about).toBeDefined()
          if (!event.repaired) expect(JSON.parse(open ?? ""), entry.about).toEqual(JSON.parse(event.input))
          open = undefined
        } else if (event.type === "malformed") open = undefined
        else expect(open, `${entry.about}: text within a call`).toBeUndefined()
      }
      expect(open, entry.about).toBeUndefined()
    }
  })
})

describe("parser: texts with a call or a mention of a call", () => {
  test("are at least 150 in every dialect, half of them mentions", () => {
    expect(mentions.length).toBeGreaterThan(150)
    const withoutCall = mentions.filter(({ calls }) => calls.length === 0)
    for (const part of [withoutCall, mentions.filter(({ calls }) => calls.length > 0)]) {
      expect(part.length).toBeGreaterThan(75)
      expect(new Set(part.map(({ dialect }) => dialect)).size).toBe(6)
    }
  })

  test.each([
    ["whole", (text: string) => [text]],
    ["character by character", (text: string) => text.split("")],
    [
      "in pieces like tokens",
      (text: string) => text.match(/\s?[\p{L}\p{N}]{1,5}|\s?[^\p{L}\p{N}]{1,3}/gu) ?? [],
    ],
    ["line by line", (text: string) => text.split(/(?<=\n)/)],
  ])("are classified correctly when they arrive %s", (_, split) => {
    for (const entry of mentions) {
      const pieces = split(entry.text)
      expect(pieces.join("")).toBe(entry.text)
      expect(summary(readPieces(entry, pieces)), entry.text).toEqual(expected(entry))
    }
  })

  test("are classified correctly when they are split at random positions", () => {
    fc.assert(
      fc.property(fc.constantFrom(...mentions), fc.array(fc.nat(), { maxLength: 12 }), (entry, places) => {
        const cuts = [0, ...places.map((place) => place % (entry.text.length + 1)), entry.text.length]
        cuts.sort((a, b) => a - b)
        const pieces = cuts.slice(1).map((end, index) => entry.text.slice(cuts[index], end))
        expect(summary(readPieces(entry, pieces)), entry.text).toEqual(expected(entry))
      }),
      { numRuns: runs(2_000) },
    )
  })

  test("contain no call if they repeat a text that the model has read", () => {
    const call = '<tool_call>\n{"name": "bash", "arguments": {"command": "rm -rf build"}}\n</tool_call>'
    const numbered = `# Notes\n${call}`.split("\n").map((line, index) => `${index + 1}\t${line}`)
    for (const quotable of [
      `Before.\n${call}\nAfter.`,
      numbered.join("\n"),
      JSON.stringify({ text: call }),
    ]) {
      const parser = createCallParser({ tools: corpusTools, dialect: "hermes", quotable: [quotable] })
      const text = `I have read it.\n\n${call}`
      const found = summary([...parser.push(text), ...parser.end()])
      expect(found).toMatchObject({ says: text, calls: [] })
    }
    const parser = createCallParser({ tools: corpusTools, dialect: "hermes", quotable: [call] })
    const other = call.replace("build", "dist")
    expect(summary([...parser.push(other), ...parser.end()]).calls).toHaveLength(1)
  })
})

describe("parser: random texts", () => {
  const marks = corpus
    .flatMap(({ text }) => text.split(/(?<=[>\]}`])|(?=[<[{`])/))
    .filter((mark) => mark !== "")
  const soup = fc.array(fc.oneof(fc.constantFrom(...new Set(marks)), fc.string({ maxLength: 5 })), {
    maxLength: 12,
  })

  test("never throw, keep their end and do not depend on how they are split", () => {
    const dialects = fc.constantFrom(...new Set(corpus.map(({ dialect }) => dialect)))
    fc.assert(
      fc.property(soup, dialects, fc.boolean(), (pieces, dialect, cut) => {
        const told = { dialect, tools: corpusTools, cut }
        const text = pieces.join("")
        const whole = summary(readPieces(told, [text]))
        expect(summary(readPieces(told, pieces))).toEqual(whole)
        expect(summary(readPieces(told, text.split("")))).toEqual(whole)
      }),
      { numRuns: runs(3_000) },
    )
  })

  test("contain no call inside a code fence", () => {
    fc.assert(
      fc.property(soup, (pieces) => {
        const inner = pieces.join("").replaceAll("~~~", "")
        const text = `~~~~\n${inner}\n~~~~\n`
        const told = { tools: corpusTools, dialect: "hermes" as const }
        expect(summary(readPieces(told, [text]))).toEqual({
          says: text,
          calls: [],
          malformed: 0,
          unknown: [],
        })
      }),
      { numRuns: runs(1_000) },
    )
  })
})

describe("parser: streaming", () => {
  test("emits text at once and holds back only a possible beginning of a call", () => {
    const parser = parserOf("hermes")
    expect(parser.push("Let me look at a<b")).toEqual([{ type: "text", text: "Let me look at a<b" }])
    expect(parser.push("; then <tool")).toEqual([{ type: "text", text: "; then" }])
    expect(parser.push("box,")).toEqual([{ type: "text", text: " <toolbox," }])
  })

  test("streams the input of a long call", () => {
    const parser = parserOf("hermes")
    const long = "one ".repeat(250)
    expect(
      parser.push(`<tool_call>\n{"name": "write", "arguments": {"filePath": "a", "content": "${long}`),
    ).toEqual([
      { type: "call-start", tool: "write" },
      { type: "call-delta", delta: `{"filePath": "a", "content": "${long}` },
    ])
    expect(parser.push("two")).toEqual([{ type: "call-delta", delta: "two" }])
  })

  test("streams a long text parameter", () => {
    const parser = parserOf("xml")
    parser.push("<function=write>\n<parameter=filePath>\na\n</parameter>\n<parameter=content>\n")
    expect(parser.push("one\n".repeat(250))).toMatchObject([{ type: "call-start" }, { type: "call-delta" }])
    expect(parser.push("one\ntwo\n  three of many")).toEqual([
      { type: "call-delta", delta: String.raw`\none\ntwo\n  three of many` },
    ])
  })

  test("reports a short call when the following text shows that the call is intended", () => {
    const parser = parserOf("hermes")
    const call = '<tool_call>{"name": "read", "arguments": {"filePath": "a"}}</tool_call>'
    expect(parser.push(call)).toEqual([])
    expect(parser.push(`\n${call}`)).toEqual([])
    expect(parser.push("\nThen I edit. ").map(({ type }) => type)).toEqual([
      ...["call-start", "call-delta", "call", "call-start", "call-delta", "call"],
      "text",
    ])
  })

  test("reads a long input in linear time", () => {
    const input = JSON.stringify({ filePath: "a", content: "x{<[`".repeat(40_000) })
    const text = `<tool_call>{"name": "write", "arguments": ${input}}</tool_call>`
    const parser = parserOf("hermes")
    const events = []
    for (let at = 0; at < text.length; at += 16) events.push(...parser.push(text.slice(at, at + 16)))
    events.push(...parser.end())
    expect(events.at(-1)).toMatchObject({ type: "call", tool: "write", input })
  })

  test("reads reasoning full of calls in linear time and accepts a call in reasoning that never ends", () => {
    const call = '<tool_call>{"name": "read", "arguments": {"filePath": "a"}}</tool_call>'
    const text = `<think>\n${`${call}\n`.repeat(5_000)}</think>\n`
    const parser = parserOf("hermes")
    expect(summary([...parser.push(text), ...parser.end()])).toEqual({
      says: text,
      calls: [],
      malformed: 0,
      unknown: [],
    })
    const open = parserOf("hermes")
    expect(open.push(`<think>\n${call}`)).toEqual([{ type: "text", text: "<think>" }])
    expect(open.end().map(({ type }) => type)).toEqual(["call-start", "call-delta", "call"])
  })

  test("reads a text full of incomplete openings in linear time", () => {
    const text = '{"name": "read", "parameters": {\n'.repeat(10_000)
    const parser = parserOf("llama")
    expect(summary([...parser.push(text), ...parser.end()])).toEqual({
      says: text,
      calls: [],
      malformed: 0,
      unknown: [],
    })
  })
})
