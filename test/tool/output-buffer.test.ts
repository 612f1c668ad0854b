import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import fc from "fast-check"
import { afterEach, beforeEach, expect, test } from "vitest"
import { countNewlines, createOutputBuffer } from "../../src/tool/output-buffer.ts"
import { createSpillOpener } from "../../src/tool/spill.ts"
import type { OutputLimits } from "../../src/tool/tool.ts"
import { terminalText } from "../../src/util/terminal-text.ts"

const limits: OutputLimits = { maxLines: 50, maxBytes: 4000, keep: "head-tail" }
let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "buffer-"))
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

function create(more: { maxBytes?: number; directory?: string } = {}) {
  return createOutputBuffer({ limits, spill: createSpillOpener({ directory, name: "x", ...more }) })
}

/** Pushes from one reused buffer, as a reader does. */
function pushAll(buffer: ReturnType<typeof create>, bytes: Buffer, chunkSize: number): void {
  const reused = Buffer.alloc(chunkSize)
  for (let at = 0; at < bytes.length; at += chunkSize) {
    const length = bytes.copy(reused, 0, at, Math.min(bytes.length, at + chunkSize))
    buffer.push(reused.subarray(0, length))
    reused.fill(0x58)
  }
}

test("returns a short output without a file", () => {
  const buffer = create()
  pushAll(buffer, Buffer.from("one\ntwö\n"), 3)
  buffer.close()
  expect(buffer.view()).toEqual({
    ...{ text: "one\ntwö\n", truncated: false },
    ...{ originalSize: 9, truncatedSize: 9 },
  })
  expect(buffer.bytes).toBe(9)
})

test("returns an empty text without output", () => {
  const buffer = create()
  buffer.close()
  expect(buffer.view()).toMatchObject({ text: "", truncated: false, originalSize: 0 })
})

test("keeps both ends of a long output and every byte in the file", () => {
  const bytes = Buffer.from(Array.from({ length: 300_000 }, (_, index) => `línea ${index}\n`).join(""))
  const buffer = create()
  pushAll(buffer, bytes, 65_536)
  const view = buffer.view()
  buffer.close()
  expect(view.truncated).toBe(true)
  expect(view.originalSize).toBe(bytes.length)
  expect(view.truncatedSize).toBe(Buffer.byteLength(view.text))
  expect(view.text).toContain(`300000 lines, ${bytes.length} bytes`)
  expect(view.text).toContain("\nlínea 0\nlínea 1\n")
  expect(view.text).toMatch(/\nlínea 299998\nlínea 299999\n$/)
  expect(view.text.split("\n").length).toBeLessThanOrEqual(limits.maxLines + 1)
  expect(readFileSync(view.outputPath ?? "").equals(bytes)).toBe(true)
})

test("completes the file at each view and continues without a gap", () => {
  const buffer = create()
  const first = Buffer.from("first\n".repeat(1000))
  const more = Buffer.from("more\n".repeat(200_000))
  pushAll(buffer, first, 1000)
  const path = buffer.view().outputPath ?? ""
  expect(readFileSync(path)).toEqual(first)
  pushAll(buffer, more, 5000)
  buffer.close()
  expect(readFileSync(path).equals(Buffer.concat([first, more]))).toBe(true)
  expect(buffer.view().outputPath).toBe(path)
})

test("applies narrower limits after the end", () => {
  const buffer = create()
  pushAll(buffer, Buffer.from("a\n".repeat(40)), 7)
  buffer.close()
  expect(buffer.view().truncated).toBe(false)
  const view = buffer.view({ maxLines: 10, maxBytes: 4000, keep: "head-tail" })
  expect(view.truncated).toBe(true)
  expect(readFileSync(view.outputPath ?? "", "utf8")).toBe("a\n".repeat(40))
})

test("keeps characters whole across chunks and blocks", () => {
  const buffer = create()
  pushAll(buffer, Buffer.from(`${"x".repeat(256 * 1024 - 2)}😀 end`), 4001)
  expect(buffer.view().text.endsWith("😀 end")).toBe(true)
  expect(buffer.tail(6)).toBe("😀 end".slice(-6))
  buffer.close()
})

test("replaces bytes that are not text", () => {
  const buffer = create()
  buffer.push(Buffer.from([0x61, 0xff, 0xfe, 0x62, 0x0a]))
  buffer.close()
  expect(buffer.view().text).toBe("a��b\n")
})

test("shows the last state of a progress bar", () => {
  const buffer = create()
  const bar = Array.from({ length: 30_000 }, (_, index) => `\r\u001b[32mdone ${index}\u001b[0m`).join("")
  pushAll(buffer, Buffer.from(`begin\n${bar}\nend\n`), 9999)
  buffer.close()
  expect(buffer.view()).toMatchObject({ text: "begin\ndone 29999\nend\n", truncated: false })
})

test("keeps escape sequences in the file only", () => {
  const buffer = create()
  const raw = "\u001b[1mbold\u001b[0m\n".repeat(100)
  buffer.push(Buffer.from(raw))
  const view = buffer.view()
  buffer.close()
  expect(view.text).not.toContain("\u001b")
  expect(readFileSync(view.outputPath ?? "", "utf8")).toBe(raw)
})

test("reports a disk error and still returns both ends", () => {
  writeFileSync(join(directory, "file"), "")
  const buffer = create({ directory: join(directory, "file") })
  pushAll(buffer, Buffer.from("line\n".repeat(200_000)), 60_000)
  buffer.close()
  const view = buffer.view()
  expect(view.outputPath).toBeUndefined()
  expect(view.text).toContain("could not be saved")
  expect(view.text.endsWith("line\n")).toBe(true)
})

test("counts on after the file has reached its limit", () => {
  const buffer = create({ maxBytes: 300_000 })
  pushAll(buffer, Buffer.from("1234567\n".repeat(100_000)), 65_536)
  buffer.close()
  const view = buffer.view()
  expect(view.originalSize).toBe(800_000)
  expect(view.text).toContain("The part up to the file size limit")
  expect(statSync(view.outputPath ?? "").size).toBeLessThan(300_100)
})

test("gives the same file and counts for any chunks", () => {
  const piece = fc.uint8Array({ maxLength: 300 })
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 30 }), (pieces) => {
      const buffer = create()
      for (const bytes of pieces) buffer.push(bytes)
      const whole = Buffer.concat(pieces)
      const view = buffer.view({ maxLines: 1, maxBytes: 1, keep: "head-tail" })
      buffer.close()
      expect(buffer.bytes).toBe(whole.length)
      if (view.outputPath !== undefined) expect(readFileSync(view.outputPath)).toEqual(whole)
      else expect(terminalText(whole.toString()).length).toBeLessThanOrEqual(1)
    }),
  )
})

test("counts newlines at every length and alignment", () => {
  const some = fc.uint8Array({ maxLength: 3000 })
  const dense = fc.array(fc.constantFrom(0x0a, 0x0b, 0x8a, 0x00, 0xff), { maxLength: 3000 })
  fc.assert(
    fc.property(fc.oneof(some, dense), fc.integer({ min: 0, max: 7 }), (values, offset) => {
      const bytes = Buffer.alloc(values.length + offset).subarray(offset)
      bytes.set(values)
      expect(countNewlines(bytes)).toBe([...values].filter((value) => value === 0x0a).length)
    }),
  )
  expect(countNewlines(Buffer.alloc(100_000, 0x0a))).toBe(100_000)
})

test("terminalText returns the final text", () => {
  expect(terminalText("a\r\nb\r\n")).toBe("a\nb\n")
  expect(terminalText("10%\r20%\r\n")).toBe("20%\n")
  expect(terminalText("\u001b]8;;https://example.org\u0007link\u001b]8;;\u0007 \u0000x\ty\u0008")).toBe(
    "link x\ty",
  )
})
