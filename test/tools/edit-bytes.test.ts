import { mkdtemp, readFile, realpath, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as fc from "fast-check"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { stampFile } from "../../src/files/file-tracker.ts"
import { fakeContext } from "../../src/testing/context.ts"
import { editTool } from "../../src/tools/edit/edit.ts"
import { isComplete } from "../runs.ts"

let directory: string

beforeAll(async () => {
  directory = await realpath(await mkdtemp(join(tmpdir(), "tackle-edit-bytes-")))
})

afterAll(() => rm(directory, { recursive: true, force: true }))

/** Edits a file with these bytes. Returns the new bytes and the strategy that found the text. */
async function edit(bytes: Buffer, texts: { oldString: string; newString: string }) {
  const path = join(directory, "a.txt")
  const ctx = fakeContext({ directory })
  await writeFile(path, bytes)
  ctx.files.record(path, await stampFile(path))
  const tool = await editTool.init()
  const { metadata } = await tool.execute(tool.parameters.parse({ filePath: path, ...texts }), ctx)
  return { bytes: await readFile(path), strategy: metadata?.strategy }
}

const encodings: Record<string, (text: string) => Buffer> = {
  "utf-8": (text) => Buffer.from(text),
  "utf-8 with mark": (text) => Buffer.from(`\ufeff${text}`),
  "utf-16le": (text) => Buffer.from(`\ufeff${text}`, "utf16le"),
  "utf-16be": (text) => Buffer.from(`\ufeff${text}`, "utf16le").swap16(),
}

/** The strategy, and the model's text for the lines `\tif (ready) {`, `\t\tcall("it")`, `\t}`. */
const bent: Record<string, [strategy: string, lines: [string, string, string]]> = {
  dedented: ["normalized-lines", ["if (ready) {", '\tcall("it")', "}"]],
  "spaces for tabs": ["normalized-lines", ["    if (ready) {", '        call("it")', "    }"]],
  "trailing spaces": ["normalized-lines", ["\tif (ready) { ", '\t\tcall("it")', "\t}"]],
  "typographic quotes": ["look-alikes", ["\tif (ready) {", "\t\tcall(“it”)", "\t}"]],
  "line numbers": ["line-numbers", ["    7→\tif (ready) {", '    8→\t\tcall("it")', "    9→\t}"]],
  "other spacing": ["normalized-lines", ["\tif  (ready)  {", '\t\tcall("it")', "\t}"]],
}

describe.each(Object.entries(encodings))("in %s", (_, encode) => {
  const line = fc.string({ unit: fc.constantFrom("a", "(", " ", "\t", "é", "😀", "’", "…") })
  const eol = fc.constantFrom("\n", "\r\n")
  const lines = fc
    .array(
      fc.tuple(line, eol).map(([words, end]) => words + end),
      { maxLength: 6 },
    )
    .map((all) => all.join(""))

  test.each(Object.entries(bent))("%s: changes no byte outside the lines", async (_, [strategy, old]) => {
    const fresh = old.map((text) => text.replace("it", "them"))
    await fc.assert(
      fc.asyncProperty(lines, lines, eol, eol, fc.boolean(), async (before, after, one, two, isLast) => {
        const rest = isLast ? "" : `\n${after}`
        const file = (word: string) => `${before}\tif (ready) {${one}\t\tcall("${word}")${two}\t}${rest}`
        const texts = { oldString: old.join("\n"), newString: fresh.join("\n") }
        const result = await edit(encode(file("it")), texts)
        // All bytes outside the changed line stay unchanged.
        const [start, end] = [file("them").indexOf("them") + 6, file("them").lastIndexOf("\t}")]
        const head = encode(file("them").slice(0, start))
        const tail = encode(file("them").slice(end))
        const mark = encode("").length
        expect(result.bytes.subarray(0, head.length)).toEqual(head)
        expect(result.bytes.subarray(result.bytes.length - tail.length + mark)).toEqual(tail.subarray(mark))
        expect(String(result.strategy).startsWith(strategy)).toBe(true)
      }),
      { numRuns: 15 },
    )
  })
})

const megabytes = isComplete ? 50 : 20

test(`edits a file of ${megabytes} MB with a few times its size of memory`, async () => {
  const line = "a line like many others, with some text\r\n"
  const half = line.repeat(Math.ceil((megabytes * 500_000) / line.length))
  const file = (word: string) => Buffer.from(`\ufeff${half}the ${word} line\r\n${half}no end`)
  const before = process.memoryUsage().rss
  const result = await edit(file("only"), { oldString: "the only line\n", newString: "the changed line\n" })
  expect(result.bytes.equals(file("changed"))).toBe(true)
  expect(result.strategy).toBe("line-endings")
  expect(process.memoryUsage().rss - before).toBeLessThan(megabytes * 30_000_000)
}, 120_000)
