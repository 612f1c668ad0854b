import { mkdtempSync, readFileSync } from "node:fs"
import { rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, expect, test } from "vitest"
import { RunError, runSubject, type Scenario } from "../../bench/run-subject.ts"
import { doStream, floor } from "../../bench/subjects.ts"

const home = mkdtempSync(join(tmpdir(), "tackle-floor-"))

afterAll(() => rm(home, { recursive: true, force: true }))

const options = { home, limitMs: 20_000 }

/** Three turns with calls, the second with two of them, streamed in pieces that cut names and escapes. */
const scenario: Scenario = {
  files: { "a.txt": 'first "line"\n' },
  replies: (tools, path) => [
    { text: "I look.", calls: [tools.read(path("a.txt"))], pieceSize: 3 },
    { calls: [tools.bash("echo from-$((40 + 2)); exit 3"), tools.read(path("missing.txt"))], pieceSize: 5 },
    { calls: [tools.write(path("b.txt"), "ä\n\tb")], pieceSize: 1 },
    { text: "Done." },
  ],
}

test("the floor runs the calls and returns their results", async () => {
  let written = ""
  const { requests, peakBytes } = await runSubject(
    floor,
    {
      ...scenario,
      async check({ read }) {
        written = await read("b.txt")
        return undefined
      },
    },
    options,
  )
  const messages = requests.at(-1)?.body.messages ?? []
  expect(messages.map(({ role }) => role)).toEqual([
    "user",
    "assistant",
    "tool",
    "assistant",
    "tool",
    "tool",
    "assistant",
    "tool",
  ])
  expect(messages[1]?.content).toBe("I look.")
  expect(messages[2]).toMatchObject({ tool_call_id: "call_0_0", content: 'first "line"\n' })
  expect(messages[4]?.content).toBe("from-42\n\n8 bytes")
  expect(messages[5]).toMatchObject({
    tool_call_id: "call_1_1",
    content: expect.stringMatching(/^Error: ENOENT/),
  })
  expect(JSON.parse(messages[6]?.tool_calls?.[0]?.function.arguments ?? "")).toMatchObject({
    content: "ä\n\tb",
  })
  expect(written).toBe("ä\n\tb")
  expect(peakBytes).toBeGreaterThan(process.platform === "linux" ? 10_000_000 : -1)
})

test("the floor ends background processes of a command without waiting for them", async () => {
  const { requests } = await runSubject(
    floor,
    {
      replies: (tools) => [{ calls: [tools.bash("sleep 60 & echo $!")] }, { text: "Done." }],
    },
    options,
  )
  const pid = Number.parseInt(String(requests[1]?.body.messages.at(-1)?.content), 10)
  expect(pid).toBeGreaterThan(0)
  // A killed process keeps its number until its parent collects it, as a zombie without a command line.
  await expect
    .poll(() => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, "utf8")
      } catch {
        return ""
      }
    })
    .toBe("")
})

test("the provider's stream alone writes the file of the call", async () => {
  const content = "const answer = 42\n".repeat(20)
  await runSubject(
    doStream,
    {
      replies: (tools, path) => [
        { calls: [tools.write(path("made.ts"), content)], pieceSize: 16 },
        { text: "Done." },
      ],
      check: async ({ read }) => ((await read("made.ts")) === content ? undefined : "another text"),
    },
    options,
  )
})

test("reports a run that fails, is incomplete, does no work or never ends", async () => {
  const run = (args: string[], change: Partial<Scenario> = {}, limitMs = 20_000) =>
    runSubject(
      { ...floor, launch: () => ({ command: process.execPath, args }) },
      { ...scenario, ...change },
      { home, limitMs },
    )
  await expect(run(["-e", "console.error('no such thing'); process.exit(2)"])).rejects.toThrow(
    new RunError("exit 2: no such thing"),
  )
  await expect(run(["-e", ""])).rejects.toThrow("made 0 of 4 requests")
  await expect(run(["-e", ""], { replies: () => [], check: async () => "nothing there" })).rejects.toThrow(
    "nothing there",
  )
  await expect(run(["-e", "setInterval(() => {}, 1000)"], {}, 300)).rejects.toThrow("not done after 0.3 s")
})
