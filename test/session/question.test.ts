import { expect, test } from "vitest"
import type { TackleEvent } from "../../src/event/events.ts"
import { UsageError } from "../../src/util/errors.ts"
import { startEngine } from "./engine.ts"
import { scriptFor, task } from "./family.ts"
import { resultsOf, run } from "./run.ts"

const ask = {
  name: "question",
  arguments: {
    questions: [
      { question: "Which one?", options: [{ label: "left" }, { label: "right", description: "the other" }] },
      { question: "What else?", multiple: true, options: [{ label: "a" }, { label: "b" }] },
    ],
  },
}
const script = [{ calls: [ask] }, { text: "Done." }]

test("is offered only while a listener answers", async () => {
  await using engine = await startEngine(() => ({ text: "Done." }))
  const offered = async () =>
    (await engine.tackle.tools()).some(({ id, offered }) => id === "question" && offered)
  expect(await offered()).toBe(false)
  const stop = engine.tackle.on("question.asked", () => {})
  expect(await offered()).toBe(true)
  stop()
  stop()
  expect(await offered()).toBe(false)
  await using told = await startEngine(script, { questions: true })
  expect((await told.tackle.tools()).find(({ id }) => id === "question")).toMatchObject({ offered: true })
})

test("fails without waiting if no user is present", async () => {
  await using engine = await startEngine(script)
  const { session, end } = await run(engine)
  expect((await resultsOf(session))[0]).toMatch(/^Error: .*no user is present to answer/)
  expect(end.status).toBe("completed")
})

test("sends answers to the model and announces them", async () => {
  await using engine = await startEngine(script)
  engine.tackle.on("question.asked", (request) => {
    expect(engine.tackle.questions.pending(request.sessionID)).toHaveLength(1)
    expect(() => request.reply([["left"]])).toThrow(UsageError)
    expect(() => request.reply([["left", "right"], []])).toThrow(/allows only one answer/)
    expect(request.reply([["left"], ["a", "my own words"]])).toBe("applied")
    expect(request.reply([["right"], []])).toBe("unknown")
    expect(request.reject()).toBe("unknown")
  })
  const { session, events } = await run(engine)
  expect((await resultsOf(session))[0]).toBe("Which one?\n→ left\n\nWhat else?\n→ a\n→ my own words")
  expect(events.filter(({ type }) => type.startsWith("question."))).toMatchObject([
    { type: "question.asked", request: { questions: ask.arguments.questions, tool: { callID: "call_0_0" } } },
    { type: "question.replied", answers: [["left"], ["a", "my own words"]] },
  ])
  expect(engine.tackle.questions.pending()).toEqual([])
})

test("treats dismissal as an answer", async () => {
  await using engine = await startEngine(script)
  engine.tackle.on("question.asked", ({ id }) => void engine.tackle.questions.reject(id))
  const { session, end } = await run(engine)
  expect((await resultsOf(session))[0]).toMatch(/^The user dismissed the questions\. Do not ask them again\./)
  expect(end).toMatchObject({ status: "completed", exitCode: 0, refused: [] })
})

test("withdraws the question on an interrupt", async () => {
  await using engine = await startEngine(script)
  const events: TackleEvent["type"][] = []
  engine.tackle.subscribe(({ type }) => events.push(type))
  const controller = new AbortController()
  engine.tackle.on("question.asked", () => controller.abort())
  const { end } = await run(engine, { signal: controller.signal })
  expect(end.status).toBe("interrupted")
  expect(events).toContain("question.rejected")
  expect(engine.tackle.questions.pending()).toEqual([])
})

test("names the task in a subagent's question", async () => {
  await using engine = await startEngine(
    scriptFor({ go: [{ calls: [task("choose")] }, { text: "Done." }], choose: script }),
  )
  const asked: unknown[] = []
  engine.tackle.on("question.asked", (request) => {
    asked.push(request.tool?.parent)
    request.reply([["left"], []])
  })
  const { session } = await run(engine)
  expect(asked).toMatchObject([{ sessionID: session.id, agent: "general" }])
})

test("asks for callTool as well", async () => {
  await using engine = await startEngine([])
  engine.tackle.on("question.asked", (request) => void request.reply([[], ["b"]]))
  const { state } = await engine.tackle.callTool({ tool: "question", input: JSON.stringify(ask.arguments) })
  expect(state).toMatchObject({ output: "Which one?\n(no answer)\n\nWhat else?\n→ b" })
})
