import { describe, expect, test } from "vitest"
import type { Fault, Reply } from "../../src/testing/reply.ts"
import { only } from "../cli/run-tackle.ts"
import { startEngine } from "./engine.ts"
import { run, tool, toolParts } from "./run.ts"

const call: Reply = {
  text: "I count.",
  calls: [{ name: "count", arguments: { text: "x".repeat(200) } }],
  pieceSize: 20,
}
/** For servers that fall silent. Long enough for a server that answers on a busy machine. */
const shortTimeouts = { firstByteMs: 1_500, idleMs: 1_500 }
/** Without a delay between attempts, to keep the tests short. */
const noWait = { "retry-after-ms": "0" }

function counted(script: Reply[], limits: object = {}) {
  let ran = 0
  const count = tool("count", async () => {
    ran += 1
    return { title: "", output: "counted" }
  })
  return startEngine(script, {
    tools: [count],
    permission: "allow",
    limits: { stream: shortTimeouts, ...limits },
  }).then((engine) => ({ ...engine, ran: () => ran }))
}

describe("a step that breaks off is retried, and nothing of it is run or kept", () => {
  test.each<Fault>(["hang", "hang-mid", "cut", "reset", "garbage", "half-event", "no-finish"])(
    "%s",
    async (fault) => {
      const engine = await counted([{ ...call, fault }, call, { text: "One." }])
      const { end, session, events } = await run(engine)
      await engine[Symbol.asyncDispose]()
      expect(end).toMatchObject({ status: "completed", text: "One." })
      expect(engine.ran()).toBe(1)
      expect(await toolParts(session)).toMatchObject([{ tool: "count", state: { status: "completed" } }])
      const retries = only(events, "part.updated").filter(({ part }) => part.type === "retry")
      expect(retries).toHaveLength(1)
      // Nothing of the first attempt is sent.
      const [first, second] = engine.server.requests
      expect(second?.body).toEqual(first?.body)
      expect(engine.server.requests).toHaveLength(3)
    },
  )
})

test.each<[string, Reply]>([
  ["a web page with status 200", { fault: "html" }],
  ["a web page with status 404", { fault: "html", status: 404 }],
  ["a request that the server finds wrong", { status: 400, text: "no such thing" }],
])("%s is not asked for again", async (_, reply) => {
  const engine = await counted([reply, { text: "Never asked." }])
  const { end } = await run(engine)
  await engine[Symbol.asyncDispose]()
  expect(end).toMatchObject({ status: "failed", exitCode: 1 })
  expect(engine.server.requests).toHaveLength(1)
})

test.each<[string, string, string]>([
  ["an image", "image/png", "\u0089PNG"],
  ["plain words", "text/plain", "hello there"],
  ["nothing at all", "text/event-stream", ""],
  ["JSON of something else", "application/json", '{"hello":"there"}'],
])("%s in place of an answer is an error in words, and nothing hangs", async (_, type, body) => {
  const reply: Reply = { body, headers: { "content-type": type } }
  const engine = await counted([reply], { retry: { maxAttempts: 1 } })
  const { end, events } = await run(engine)
  await engine[Symbol.asyncDispose]()
  expect(end).toMatchObject({ status: "failed", exitCode: 1 })
  expect(only(events, "session.error")[0]?.error.message).toMatch(/^test\/m: /)
})

describe("retries", () => {
  test("stop at the limit", async () => {
    const down: Reply = { status: 503, text: "down", headers: noWait }
    const engine = await counted(Array(9).fill(down), { retry: { maxAttempts: 3 } })
    const { end } = await run(engine)
    await engine[Symbol.asyncDispose]()
    expect(end.status).toBe("failed")
    expect(engine.server.requests).toHaveLength(3)
  })

  test("stop when the server asks for a wait above the ceiling", async () => {
    const busy: Reply = { status: 429, text: "later", headers: { "retry-after": "3600" } }
    const engine = await counted([busy, { text: "Never asked." }], { retry: { ceilingMs: 60_000 } })
    const { end, events } = await run(engine)
    await engine[Symbol.asyncDispose]()
    expect(end.status).toBe("failed")
    expect(only(events, "session.error")[0]?.error.message).toContain("The server asks you to wait 60 min")
    expect(engine.server.requests).toHaveLength(1)
  })

  test("are counted per step", async () => {
    const down: Reply = { status: 503, text: "down", headers: noWait }
    const engine = await counted([down, call, down, { text: "One." }], { retry: { maxAttempts: 2 } })
    const { end } = await run(engine)
    await engine[Symbol.asyncDispose]()
    expect(end).toMatchObject({ status: "completed", text: "One." })
  })
})
