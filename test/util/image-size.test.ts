import fc from "fast-check"
import { expect, test } from "vitest"
import { imageSize } from "../../src/util/image-size.ts"

const bytes = (...parts: (string | number[])[]) =>
  Buffer.concat(
    parts.map((part) => (typeof part === "string" ? Buffer.from(part, "latin1") : Buffer.from(part))),
  )

test.each<[string, Buffer]>([
  ["PNG", bytes("\x89PNG\r\n\x1a\n", [0, 0, 0, 13], "IHDR", [0, 0, 3, 0], [0, 0, 2, 0])],
  ["GIF", bytes("GIF89a", [0, 3, 0, 2])],
  [
    "JPEG behind a preview",
    bytes([0xff, 0xd8, 0xff, 0xe0, 0, 4, 1, 2, 0xff, 0xc4, 0, 2, 0xff, 0xc2, 0, 11, 8, 2, 0, 3, 0]),
  ],
  ["WebP, lossy", bytes("RIFF", [0, 0, 0, 0], "WEBPVP8 ", [0, 0, 0, 0, 0, 0, 0, 0x9d, 1, 0x2a, 0, 3, 0, 2])],
  ["WebP, lossless", bytes("RIFF", [0, 0, 0, 0], "WEBPVP8L", [0, 0, 0, 0, 0x2f, 0xff, 0xc2, 0x7f, 0])],
  [
    "WebP, extended",
    bytes("RIFF", [0, 0, 0, 0], "WEBPVP8X", [0, 0, 0, 0, 0, 0, 0, 0, 0xff, 2, 0, 0xff, 1, 0]),
  ],
])("%s: 768 by 512", (_, head) => {
  expect(imageSize(head)).toEqual({ width: 768, height: 512 })
  for (let length = 0; length < head.length; length += 1)
    expect(() => imageSize(head.subarray(0, length))).not.toThrow()
})

test("returns for any bytes without throwing", () => {
  const beginnings = fc.constantFrom("", "\x89PNG", "GIF8", "\xff\xd8\xff", "RIFF____WEBPVP8X")
  fc.assert(
    fc.property(beginnings, fc.uint8Array({ maxLength: 200 }), (beginning, rest) => {
      imageSize(bytes(beginning, [...rest]))
    }),
  )
})
