import { expect, test } from "vitest"
import { fromRecorded, parseRecording, toRecorded } from "../../../src/model/recording/format.ts"
import { startReplay } from "../../../src/model/recording/replay.ts"

const run = {
  type: "run",
  version: 1,
  prompt: "go",
  files: [],
  model: "test/m",
  named: false,
  providers: {},
  limits: {},
  allow: [],
  deny: [],
  questions: false,
}

function recordingOf(...lines: unknown[]) {
  return parseRecording([run, ...lines].map((line) => JSON.stringify(line)).join("\n"), "x.jsonl")
}

test("offers the MCP tools of the next request", async () => {
  const tool = (id: string) => ({ server: "s", id, description: "", schema: {} })
  const request = (number: number) => ({
    type: "request",
    number,
    method: "POST",
    url: "http://127.0.0.1/v1",
    body: { number },
  })
  const response = (number: number) => ({ type: "response", number, status: 200, parts: [] })
  const replay = startReplay(
    recordingOf(
      { type: "mcp", tools: [tool("one")] },
      request(1),
      response(1),
      { type: "mcp", tools: [tool("two")] },
      request(2),
      response(2),
    ),
  )
  expect(replay.offered().map(({ id }) => id)).toEqual(["one"])
  await replay.fetch("http://127.0.0.1/v1", { method: "POST", body: JSON.stringify({ number: 1 }) })
  expect(replay.offered().map(({ id }) => id)).toEqual(["two"])
})

test("keeps text unencoded and other files as data URLs", () => {
  const text = { mime: "text/plain", url: `data:text/plain;base64,${btoa("at /here")}`, filename: "a" }
  expect(toRecorded(text)).toEqual({ mime: "text/plain", filename: "a", text: "at /here" })
  const image = { mime: "image/png", url: "data:image/png;base64,AAAA" }
  for (const file of [text, image]) expect(fromRecorded(toRecorded(file))).toEqual(file)
})
