import { stripVTControlCharacters } from "node:util"
import { expect, test } from "vitest"
import { formattingLines } from "../../../src/cli/view/call.ts"

function lines(metadata: Record<string, unknown>, width = 100): string[] {
  const state = {
    status: "completed" as const,
    input: {},
    title: "",
    output: "",
    metadata,
    time: { start: 0, end: 1 },
  }
  return formattingLines(state, "/w", width).map(stripVTControlCharacters)
}

test("names each file of a patch with its formatters, or the reason why it is not formatted", () => {
  const diff = "--- a\n+++ a\n@@ -1 +1,2 @@\n-x\n+y\n+z\n"
  expect(
    lines({
      formatted: [
        { path: "/w/src/a.ts", by: ["biome", "tidy"], diff },
        { path: "/w/b.ts", by: ["biome"], diff: "" },
      ],
      notFormatted: [{ path: "/w/c.ts", problem: "biome: ended with exit code 1: \u001b[31mbad\nsyntax" }],
    }),
  ).toEqual([
    "  src/a.ts formatted by biome and tidy · +2 −1",
    "  b.ts formatted by biome",
    expect.stringMatching(/^ {2}c\.ts not formatted: biome: ended with exit code 1: .*bad.*syntax$/),
  ])
})

test("shows no line for an unformatted call, and cuts a long line", () => {
  expect(lines({ diff: "+x" })).toEqual([])
  expect(lines({ notFormatted: `tidy: ${"long ".repeat(40)}` }, 60)[0]?.length).toBeLessThanOrEqual(60)
})
