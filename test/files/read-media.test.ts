import { mkdtemp, realpath, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import sharp from "sharp"
import { expect, test } from "vitest"
import { stampFile } from "../../src/files/file-tracker.ts"
import { fitPicture } from "../../src/files/read-media.ts"
import { fakeContext } from "../../src/testing/context.ts"
import { readTool } from "../../src/tools/read.ts"

const blank = (width: number, height: number) =>
  sharp({ create: { width, height, channels: 3, background: "red" } })

/** Returns random pixels, which no format can compress. */
function noise(width: number, height: number) {
  const pixels = Buffer.alloc(width * height * 3)
  for (let at = 0, state = 1; at < pixels.length; at++) {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
    pixels[at] = state >>> 24
  }
  return sharp(pixels, { raw: { width, height, channels: 3 } })
}

test("keeps an image within the limits", async () => {
  const content = await blank(200, 100).png().toBuffer()
  const fitted = await fitPicture({ content, mime: "image/png" })
  expect(fitted).toEqual({ content, mime: "image/png" })
})

test("scales down an image with too many pixels, keeping its proportions", async () => {
  const content = await blank(9_000, 900).png().toBuffer()
  const { content: small, mime, scaled } = await fitPicture({ content, mime: "image/png" })
  expect(await sharp(small).metadata()).toMatchObject({ format: "png", width: 2_000, height: 200 })
  expect({ mime, scaled }).toEqual({
    mime: "image/png",
    scaled: { from: "9000 × 900", to: "2000 × 200" },
  })
})

test("converts an image with too many bytes to JPEG", async () => {
  const content = await noise(1_600, 1_200).png().toBuffer()
  expect(content.length).toBeGreaterThan(4_000_000)
  const { content: small, mime } = await fitPicture({ content, mime: "image/png" })
  expect(mime).toBe("image/jpeg")
  expect(small.length).toBeLessThan(3_900_000)
})

test("keeps the image without sharp, and keeps a broken image", async () => {
  const content = await blank(9_000, 90).png().toBuffer()
  expect(await fitPicture({ content, mime: "image/png" }, async () => undefined)).toEqual({
    content,
    mime: "image/png",
  })
  const broken = content.subarray(0, 60)
  expect((await fitPicture({ content: broken, mime: "image/png" })).content).toBe(broken)
})

test("read attaches the scaled image, reports that, and records the original file", async () => {
  const directory = await realpath(await mkdtemp(join(tmpdir(), "tackle-picture-")))
  try {
    const path = join(directory, "wide.png")
    await writeFile(path, await blank(9_000, 900).png().toBuffer())
    const context = fakeContext({ directory })
    const result = await (await readTool.init()).execute({ filePath: path }, context)
    expect(result.output).toContain("scaled from 9000 × 900 to 2000 × 200 pixels")
    const url = result.attachments?.[0]?.url ?? ""
    const sent = Buffer.from(url.slice(url.indexOf(",") + 1), "base64")
    expect(await sharp(sent).metadata()).toMatchObject({ width: 2_000, height: 200 })
    expect(context.files.seen(path)).toEqual(await stampFile(path))
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
})
