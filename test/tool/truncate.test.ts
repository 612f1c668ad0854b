import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import fc from "fast-check"
import { afterEach, beforeEach, describe, expect, test } from "vitest"
import { createSpillOpener, type SpillOpener } from "../../src/tool/spill.ts"
import type { OutputLimits } from "../../src/tool/tool.ts"
import { defaultLimits, truncateOutput } from "../../src/tool/truncate.ts"
import { runs } from "../runs.ts"

let directory: string
let spill: SpillOpener

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "truncate-"))
  spill = createSpillOpener({ directory: join(directory, "spill"), name: "call" })
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

function numbered(count: number): string {
  return Array.from({ length: count }, (_, index) => `line ${index}\n`).join("")
}

/** Splits an output into the notice and the text after it. */
function parts(output: string): { notice: string; kept: string } {
  const [notice = "", ...kept] = output.split("\n\n")
  return { notice, kept: kept.join("\n\n") }
}

test("returns a short output unchanged, without a file", () => {
  const text = numbered(defaultLimits.maxLines)
  const { output, metadata } = truncateOutput(text, { limits: defaultLimits, spill })
  expect(output).toBe(text)
  expect(metadata).toEqual({ truncated: false, originalSize: text.length, truncatedSize: text.length })
})

test("the defaults are 2,000 lines and 50 KB of the beginning", () => {
  expect(defaultLimits).toEqual({ maxLines: 2000, maxBytes: 51_200, keep: "head" })
})

test("truncates one line too many, with size and path in the notice", () => {
  const text = numbered(2001)
  const { output, metadata } = truncateOutput(text, { limits: defaultLimits, spill })
  const path = join(directory, "spill", "tool_call_1.txt")
  expect(metadata).toEqual({
    truncated: true,
    outputPath: path,
    originalSize: text.length,
    truncatedSize: Buffer.byteLength(output),
  })
  expect(readFileSync(path, "utf8")).toBe(text)
  const { notice, kept } = parts(output)
  for (const said of [
    "2001 lines",
    `${text.length} bytes`,
    path,
    "the first 1997 lines follow",
    "offset 1997",
    "grep",
  ]) {
    expect(notice).toContain(said)
  }
  expect(notice).not.toContain("task")
  expect(text.startsWith(kept)).toBe(true)
  expect(kept.endsWith("\n")).toBe(true)
})

test.each<[name: string, text: string, limits: Partial<OutputLimits>]>([
  ["lines", numbered(5000), {}],
  ["bytes", numbered(1900).replaceAll("\n", `${"x".repeat(40)}\n`), {}],
  ["both ends", numbered(5000), { keep: "head-tail" }],
  ["a cut line", `short\n${"x".repeat(60_000)}\n`, {}],
])("names the offset of the first missing line for %s", (_, text, given) => {
  const limits = { ...defaultLimits, ...given }
  const { output } = truncateOutput(text, { limits, spill })
  const [, offset = ""] = /use read with offset (\d+)/.exec(output) ?? []
  const { kept } = parts(output)
  const lines = text.split("\n")
  const shown = kept.split("\n")
  expect(shown.slice(0, Number(offset))).toEqual(lines.slice(0, Number(offset)))
  expect(shown[Number(offset)]).not.toBe(lines[Number(offset)])
  expect(output).toMatch(new RegExp(`; the first ${offset} line`))
})

test("mentions task to agents that can delegate", () => {
  const { output } = truncateOutput(numbered(2001), { limits: defaultLimits, spill, canDelegate: true })
  expect(parts(output).notice).toContain("have a subagent read it with task")
})

test("keeps both ends with the number of omitted lines between", () => {
  const limits: OutputLimits = { maxLines: 20, maxBytes: 51_200, keep: "head-tail" }
  const { output } = truncateOutput(numbered(100), { limits, spill })
  const lines = parts(output).kept.split("\n")
  const mark = lines.findIndex((line) => line.startsWith("[…"))
  expect(lines.slice(0, mark)).toEqual(lines.slice(0, mark).map((_, index) => `line ${index}`))
  expect(lines.at(-2)).toBe("line 99")
  const shown = lines.length - 2
  expect(lines[mark]).toBe(`[… ${100 - shown} lines omitted …]`)
})

test("cuts a huge first line between characters", () => {
  const { output } = truncateOutput("é".repeat(60_000), { limits: defaultLimits, spill })
  const { kept } = parts(output)
  expect(kept).toMatch(/^é{20000,}$/)
})

test("keeps both ends of one huge line", () => {
  const text = `start${"😀".repeat(60_000)}end`
  const { output } = truncateOutput(text, { limits: { ...defaultLimits, keep: "head-tail" }, spill })
  expect(parts(output).kept).toMatch(
    /^start(?:😀){1000,}\n\[… the middle of a long line omitted …\]\n(?:😀){1000,}end$/u,
  )
})

describe("disk errors", () => {
  test("are reported in the notice", () => {
    writeFileSync(join(directory, "file"), "")
    const refusing = createSpillOpener({ directory: join(directory, "file", "spill"), name: "call" })
    const { output, metadata } = truncateOutput(numbered(3000), { limits: defaultLimits, spill: refusing })
    expect(metadata.truncated).toBe(true)
    expect(metadata.outputPath).toBeUndefined()
    expect(parts(output).notice).toMatch(/could not be saved \(E(NOTDIR|EXIST)/)
    expect(parts(output).kept).toMatch(/^line 0\nline 1\n/)
  })

  test("say that a file has reached its limit", () => {
    const small = createSpillOpener({ directory, name: "call", maxBytes: 100 })
    const { output } = truncateOutput(numbered(3000), { limits: defaultLimits, spill: small })
    expect(parts(output).notice).toContain("The part up to the file size limit")
  })
})

const line = fc.oneof(
  fc.string({ unit: "grapheme", maxLength: 40 }),
  fc.constantFrom("", "é".repeat(300), "x".repeat(2000)),
)
const anyText = fc
  .array(
    line.map((text) => text.replaceAll("\n", "")),
    { maxLength: 200 },
  )
  .map((lines) => lines.join("\n"))
const anyLimits = fc.record({
  maxLines: fc.integer({ min: 8, max: 100 }),
  maxBytes: fc.integer({ min: 800, max: 4000 }),
  keep: fc.constantFrom<OutputLimits["keep"]>("head", "head-tail"),
})

test("keeps the limits with whole lines from both ends for any text, and is idempotent", () => {
  fc.assert(
    fc.property(anyText, anyLimits, (text, limits) => {
      const { output, metadata } = truncateOutput(text, { limits, spill })
      if (!metadata.truncated) return output === text
      expect(output.split("\n").length).toBeLessThanOrEqual(limits.maxLines + 1)
      expect(Buffer.byteLength(output)).toBeLessThanOrEqual(limits.maxBytes)
      const kept = output.slice(output.indexOf("\n\n") + 2)
      const [head = "", tail = ""] =
        limits.keep === "head" ? [kept] : kept.split(/\n?\[… [^\n]* omitted …\]\n/)
      expect(text.startsWith(head)).toBe(true)
      expect(text.endsWith(tail)).toBe(true)
      expect(head.length + tail.length).toBeLessThanOrEqual(text.length)
      const afterHead = text[head.length]
      const firstLine = text.split("\n", 1)[0] ?? ""
      expect(head.endsWith("\n") || afterHead === "\n" || head === "" || firstLine.startsWith(head)).toBe(
        true,
      )
      expect(truncateOutput(output, { limits, spill }).output).toBe(output)
      return true
    }),
    { numRuns: runs(300) },
  )
})
