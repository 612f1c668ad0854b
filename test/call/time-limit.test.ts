import { expect, test } from "vitest"
import { createUserWaits } from "../../src/call/time-limit.ts"
import { callLine } from "../../src/cli/view/call.ts"
import type { ToolPart } from "../../src/schema/part.ts"
import { startEngine } from "../session/engine.ts"
import { run, tool, toolParts } from "../session/run.ts"

test("separates the user's time from the tool's", async () => {
  const asking = tool("asking", async (_, ctx) => {
    await ctx.ask({ permission: "edit", patterns: ["x"], always: ["*"] })
    return { title: "asking", output: "done" }
  })
  const script = [{ calls: [{ name: "asking", arguments: {} }] }, { text: "Done." }]
  const permission = { asking: "allow", edit: "ask" } as const
  await using engine = await startEngine(script, { tools: [asking], permission })
  engine.tackle.on("permission.asked", ({ id }) => {
    setTimeout(() => engine.tackle.reply(id, { reply: "once" }), 30)
  })
  const began = performance.now()
  const { session, events } = await run(engine)
  const total = performance.now() - began
  const timeOf = (type: string) => events.find((event) => event.type === type)?.time ?? 0
  const [asked, replied] = [timeOf("permission.asked"), timeOf("permission.replied")]
  const [call] = await toolParts(session)
  if (call?.state.status !== "completed") throw new Error("the call did not complete")
  const { start, end, waited = 0 } = call.state.time
  expect(replied).toBeGreaterThan(asked)
  expect(waited).toBeGreaterThanOrEqual(replied - asked)
  expect(waited).toBeLessThanOrEqual(end - start)
  const completed = events.find((event) => event.type === "run.completed")
  expect(completed?.durationMs).toBeLessThanOrEqual(total - (replied - asked) + 2)
})

test("counts parallel waits once, and none without a question", async () => {
  const waits = createUserWaits()
  const began = performance.now()
  const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const
  const [first, second, none] = [
    waits.during((begin) => {
      begin()
      begin()
      return gates[0].promise
    }),
    waits.during((begin) => {
      begin()
      return gates[1].promise
    }),
    waits.during(async () => {}),
  ]
  await none
  while (performance.now() - began < 20) await new Promise((next) => setTimeout(next, 5))
  gates[0].resolve()
  await first
  gates[1].reject(new Error("refused"))
  await expect(second).rejects.toThrow("refused")
  const total = waits.total()
  expect(total).toBeLessThanOrEqual(Math.round(performance.now() - began))
  expect(total).toBeGreaterThan(0)
  expect(waits.total()).toBe(total)
})

test("shows a title that equals the tool's name once", () => {
  const time = { start: 0, end: 1 }
  const state = {
    status: "completed",
    input: { text: "a" },
    output: "",
    title: "count",
    metadata: {},
    time,
  } as const
  const ids = { id: "prt_1", sessionID: "ses_1", messageID: "msg_1", callID: "1" }
  const line = (tool: string) => callLine({ ...ids, type: "tool", tool, state }, "/", 80).join("\n")
  expect(line("count")).toMatch(/✓\S* count$/)
  expect(line("words")).toMatch(/✓\S* words count$/)
})

test("shows the working time of a call", () => {
  const line = (time: { start: number; end: number; waited?: number }) => {
    const state = { status: "completed", input: {}, output: "", title: "", metadata: {}, time } as const
    const ids = { id: "prt_1", sessionID: "ses_1", messageID: "msg_1", callID: "1" }
    const part: ToolPart = { ...ids, type: "tool", tool: "edit", state }
    return callLine(part, "/", 80).join("\n")
  }
  expect(line({ start: 0, end: 9_000, waited: 8_400 })).toContain("0.6 s")
  expect(line({ start: 0, end: 9_000, waited: 8_900 })).not.toContain(" s")
  expect(line({ start: 0, end: 9_000 })).toContain("9.0 s")
})
