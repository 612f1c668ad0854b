import { stripVTControlCharacters } from "node:util"
import { resetCapabilitiesCache, setCapabilities, visibleWidth } from "@earendil-works/pi-tui"
import sharp from "sharp"
import { afterEach, beforeAll, expect, test } from "vitest"
import type { ToolPart } from "../../src/schema/part.ts"
import { renderFile } from "../../src/tui/image-view.ts"
import { renderCall } from "../../src/tui/tool-card.ts"
import { theme } from "./components.ts"

const urls = { png: "", jpeg: "" }
beforeAll(async () => {
  const image = sharp({ create: { width: 320, height: 160, channels: 3, background: "red" } })
  for (const format of ["png", "jpeg"] as const)
    urls[format] =
      `data:image/${format};base64,${(await image.clone().toFormat(format).toBuffer()).toString("base64")}`
})
afterEach(() => resetCapabilitiesCache())

function useTerminal(images: "kitty" | "iterm2" | null): void {
  setCapabilities({ images, trueColor: true, hyperlinks: false })
}

const plain = (lines: readonly string[]) => lines.map((line) => stripVTControlCharacters(line))

test("names the image and its size where the terminal shows no images", () => {
  useTerminal(null)
  const lines = renderFile({ mime: "image/png", url: urls.png, filename: "a\u001b[2J.png" }, 80, theme)
  expect(plain(lines)).toEqual([expect.stringMatching(/^ {2}\+ a<U\+001B>\[2J\.png · 320×160 · \d+ k?B$/)])
  expect(visibleWidth(renderFile({ mime: "image/png", url: urls.png }, 12, theme)[0] ?? "")).toBe(12)
})

test("draws the image where the terminal shows images, with lines that keep its place", () => {
  useTerminal("kitty")
  const lines = renderFile({ mime: "image/png", url: urls.png, filename: "a.png" }, 40, theme)
  expect(lines.filter((line) => line.includes("\u001b_G"))).toHaveLength(1)
  expect(lines.length).toBeGreaterThan(4)
  expect(lines.length).toBeLessThanOrEqual(16)
  useTerminal("iterm2")
  expect(renderFile({ mime: "image/jpeg", url: urls.jpeg }, 40, theme).join()).toContain("\u001b]1337;File=")
})

test("draws no image of a format that the terminal does not support, and no data that is not an image", () => {
  useTerminal("kitty")
  expect(plain(renderFile({ mime: "image/jpeg", url: urls.jpeg, filename: "a.jpg" }, 80, theme))).toEqual([
    expect.stringContaining("a.jpg · 320×160"),
  ])
  for (const url of [`${urls.png}\u001b[2J`, "data:image/png;base64,aGVsbG8=", "https://example.org/a.png"])
    expect(plain(renderFile({ mime: "image/png", url, filename: "a.png" }, 80, theme))).toEqual(["  + a.png"])
})

test("shows the image that a call returned", () => {
  useTerminal("kitty")
  const state = {
    ...{ status: "completed", input: { filePath: "/w/a.png" }, output: "Image read.", title: "a.png" },
    ...{ metadata: {}, time: { start: 1, end: 2 } },
    attachments: [{ type: "file", mime: "image/png", url: urls.png, filename: "a.png" }],
  }
  const base = { id: "prt_1", sessionID: "ses_1", messageID: "msg_1", callID: "call_1" }
  const part = { ...base, type: "tool", tool: "read", state } as unknown as ToolPart
  const lines = renderCall(part, 80, {
    ...{ theme, expanded: false, expandKey: "", worktree: "/w", subagents: new Map() },
  })
  expect(plain(lines)[0]).toContain("✓ read a.png")
  expect(lines.join()).toContain("\u001b_G")
})
