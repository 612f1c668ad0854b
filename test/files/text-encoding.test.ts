import * as fc from "fast-check"
import { expect, test } from "vitest"
import { decodeText, encodeText, type TextFormat } from "../../src/files/text-encoding.ts"
import { runs } from "../runs.ts"

const formats: TextFormat[] = [
  { encoding: "utf-8", bom: false },
  { encoding: "utf-8", bom: true },
  { encoding: "utf-16le", bom: true },
  { encoding: "utf-16be", bom: true },
]

test.each(formats)("restores text and format of $encoding, bom $bom", (format) => {
  const text = fc
    .string({ unit: "grapheme" })
    .filter((value) => !value.includes("\0") && !/^\ufeff/.test(value))
  fc.assert(
    fc.property(text, (value) => {
      expect(decodeText(encodeText(value, format))).toEqual({ kind: "text", text: value, format })
    }),
  )
})

test("encodes every decoded text to the same bytes", () => {
  const mark = fc.constantFrom([], [0xef, 0xbb, 0xbf], [0xff, 0xfe], [0xfe, 0xff])
  fc.assert(
    fc.property(mark, fc.uint8Array({ maxLength: 12 }), (start, rest) => {
      const bytes = Uint8Array.from([...start, ...rest])
      const decoded = decodeText(bytes)
      if (decoded.kind !== "text") return
      expect([...encodeText(decoded.text, decoded.format)]).toEqual([...bytes])
    }),
    { numRuns: runs(1000) },
  )
})

test.each([
  ["a NUL byte", [0x61, 0, 0x62], "binary"],
  ["UTF-32 with its mark", [0xff, 0xfe, 0, 0, 0x61, 0, 0, 0], "binary"],
  ["Latin-1", [0x63, 0xe4, 0x66], "unknown"],
  ["half a UTF-16 character", [0xff, 0xfe, 0x61], "unknown"],
  ["a lone UTF-16 surrogate", [0xff, 0xfe, 0x3d, 0xd8], "unknown"],
])("%s is no text", (_, bytes, kind) => {
  expect(decodeText(Uint8Array.from(bytes))).toEqual({ kind })
})

test("rejects half a character", () => {
  expect(() => encodeText("a\ud83d", formats[0] as TextFormat)).toThrow(/lone UTF-16 surrogate/)
})
