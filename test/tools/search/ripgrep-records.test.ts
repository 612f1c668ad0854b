import fc from "fast-check"
import { expect, test } from "vitest"
import { readRecords } from "../../../src/tools/search/ripgrep-records.ts"
import { collected } from "../../suites/search-engine.ts"

function match(
  lines: { text: string } | { bytes: string },
  line: number,
  submatches: unknown[] = [],
): string {
  const path = { text: "./a.txt" }
  return JSON.stringify({
    type: "match",
    data: { path, lines, line_number: line, absolute_offset: 0, submatches },
  })
}

const begin = JSON.stringify({ type: "begin", data: { path: { text: "./a.txt" } } })
const end = JSON.stringify({ type: "end", data: { path: { bytes: "/2E=" }, binary_offset: null, stats: {} } })

async function* pieces(text: string, size: number): AsyncGenerator<Buffer> {
  const bytes = Buffer.from(text)
  for (let start = 0; start < bytes.length; start += size) yield bytes.subarray(start, start + size)
}

function records(lines: string[], size = 65_536, maxLength = 2000) {
  return collected(readRecords(pieces(lines.map((line) => `${line}\n`).join(""), size), maxLength))
}

test("yields matches and ends, ignores other records", async () => {
  expect(await records([begin, match({ text: "foo\r\n" }, 3), end, '{"data":{},"type":"summary"}'])).toEqual([
    { type: "match", path: "./a.txt", line: 3, text: "foo" },
    { type: "end", path: "\ufffda", binary: false, whole: true },
  ])
})

test("returns number and beginning of a record of any length, in any chunks", async () => {
  const nasty = `"},"line_number":999,"x\\`.repeat(20_000)
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 1000, max: 100_000 }),
      fc.constantFrom("ü", "🙂", "\\", "a"),
      async (size, letter) => {
        const text = letter + nasty
        const [found, last] = await records([match({ text }, 42), end], size)
        expect(found).toMatchObject({ type: "match", path: "./a.txt", line: 42 })
        expect(found?.type === "match" && text.startsWith(found.text) && found.text.length).toBe(2000)
        expect(last).toMatchObject({ type: "end" })
      },
    ),
    { numRuns: 30 },
  )
})

test("returns number and beginning of a record that is long because of its matches or base64", async () => {
  const submatches = Array.from({ length: 20_000 }, (_, start) => ({
    match: { text: "a" },
    start,
    end: start + 1,
  }))
  const bytes = Buffer.from(`\xff${"b".repeat(500_000)}`, "latin1").toString("base64")
  expect(await records([match({ text: "aaa\n" }, 7, submatches), match({ bytes }, 8)], 1000, 3)).toEqual([
    { type: "match", path: "./a.txt", line: 7, text: "aaa" },
    { type: "match", path: "./a.txt", line: 8, text: "\ufffdbb" },
  ])
})

test("stops at an endless record once its text is known", async () => {
  const submatch = JSON.stringify({ match: { text: "a" }, start: 0, end: 1 })
  let taken = 0
  async function* endless(): AsyncGenerator<Buffer> {
    yield Buffer.from(match({ text: "aaa" }, 5).replace(/\]\}\}$/, submatch))
    const more = Buffer.from(`,${submatch}`.repeat(10_000))
    for (;;) {
      taken += more.length
      yield more
    }
  }
  expect(await collected(readRecords(endless(), 2000))).toEqual([
    { type: "match", path: "./a.txt", line: 5, text: "aaa" },
    { type: "end", path: "./a.txt", binary: false, whole: false },
  ])
  expect(taken).toBeLessThan(70 * 1024 * 1024)
})

test("throws for invalid records", async () => {
  await expect(records(['{"type":"surprise"}'])).rejects.toThrow()
})
