import { writeFile } from "node:fs/promises"
import { pathToFileURL } from "node:url"
import { describe, expect, onTestFinished, test } from "vitest"
import type { Question, QuestionAnswers } from "../../../src/schema/question.ts"
import { temporaryProject } from "../../../src/testing/project.ts"
import { type Engine, startEngine } from "../../session/engine.ts"
import { resultsOf, run } from "../../session/run.ts"
import { realServer, scriptedServer } from "./servers.ts"

const { settings: everything } = realServer("everything")
const permission = { "everything_*": "allow" } as const

/** Returns the answer that the server received. */
async function answerOf(engine: Engine, options: Parameters<typeof run>[1] = {}): Promise<unknown> {
  const { session } = await run(engine, options)
  const [result = ""] = await resultsOf(session)
  const json = /Raw result: (.*)$/s.exec(result)?.[1] ?? /LLM sampling result: \n(.*)$/s.exec(result)?.[1]
  return json === undefined ? result : JSON.parse(json)
}

const calling = (name: string, args = {}) => [
  { calls: [{ name: `everything_${name}`, arguments: args }] },
  { text: "Done." },
]

describe("elicitation", () => {
  /** Answers fields by header; the others stay empty. */
  function answering(engine: Engine, answers: Record<string, string[]>[]) {
    const asked: Question[][] = []
    engine.tackle.on("question.asked", ({ questions, reply }) => {
      const given = answers[asked.length] ?? {}
      asked.push(questions)
      reply(questions.map(({ header = "" }): QuestionAnswers[number] => given[header] ?? []))
    })
    return asked
  }

  test("shows a form as questions, and uses defaults for empty answers", async () => {
    await using engine = await startEngine(calling("trigger-elicitation-request"), {
      mcp: { everything },
      permission,
    })
    const asked = answering(engine, [
      { String: ["Ada"], Boolean: ["Yes"], Integer: ["7"], "Titled Single Select Enum": ["Wonder Woman"] },
    ])
    expect(await answerOf(engine)).toEqual({
      action: "accept",
      content: {
        name: "Ada",
        check: true,
        firstLine: "It was a dark and stormy night.",
        integer: 7,
        number: 3.14,
        untitledSingleSelectEnum: "Monica",
        untitledMultipleSelectEnum: ["Guitar"],
        titledSingleSelectEnum: "hero-3",
        titledMultipleSelectEnum: ["fish-1"],
        legacyTitledEnum: "pet-1",
      },
    })
    expect(asked).toHaveLength(1)
    expect(asked[0]?.[0]?.question).toBe(
      "The MCP server everything asks: Please provide inputs for the following fields:\nString: Your full, legal name",
    )
    expect(asked[0]?.find(({ header }) => header === "Titled Multiple Select Enum")).toMatchObject({
      options: [{ label: "Tuna" }, { label: "Salmon" }, { label: "Trout" }],
      multiple: true,
    })
  })

  test("asks again after an invalid answer", async () => {
    await using engine = await startEngine(calling("trigger-elicitation-request"), {
      mcp: { everything },
      permission,
    })
    const asked = answering(engine, [
      { Integer: ["half"], "String with email format": ["nowhere"] },
      { String: ["Ada"], Integer: ["3"], "String with email format": ["ada@example.com"] },
    ])
    expect(await answerOf(engine)).toMatchObject({
      action: "accept",
      content: { name: "Ada", integer: 3, email: "ada@example.com" },
    })
    expect(asked[1]?.map(({ question }) => question.split("\n").at(-1))).toEqual([
      "Please enter a value, because this field is required.",
      "Please enter an email address.",
      "Please enter a whole number from 1 to 100.",
    ])
  })

  test("cancels if the user dismisses the form, and declines without a user", async () => {
    await using engine = await startEngine(
      [...calling("trigger-elicitation-request"), ...calling("trigger-elicitation-request")],
      { mcp: { everything }, permission },
    )
    expect(await answerOf(engine)).toEqual({ action: "decline" })
    engine.tackle.on("question.asked", ({ reject }) => void reject())
    expect(await answerOf(engine)).toEqual({ action: "cancel" })
  })
})

test("withdraws the question when the server cancels the form during the call", async () => {
  const project = await temporaryProject()
  onTestFinished(project.remove)
  const log = project.path("log")
  const { settings } = scriptedServer(log)
  await using engine = await startEngine([], { mcp: { scripted: settings }, permission: { "*": "allow" } })
  const gone = Promise.withResolvers<void>()
  engine.tackle.on("question.rejected", () => gone.resolve())
  engine.tackle.on("question.asked", () => void writeFile(`${log}.take-back`, ""))
  const stop = new AbortController()
  const call = engine.tackle.callTool({ tool: "scripted_doubt", input: "{}", signal: stop.signal })
  await gone.promise
  expect(engine.tackle.questions.pending()).toEqual([])
  stop.abort()
  expect((await call).state.status).toBe("error")
})

describe("sampling", () => {
  const script = [
    {
      calls: [
        { name: "everything_trigger-sampling-request", arguments: { prompt: "Sing", maxTokens: 9_999 } },
      ],
    },
    { text: "La la." },
    { text: "Done." },
  ]

  test("sends the request after the user allows it, with limited tokens and no tools", async () => {
    await using engine = await startEngine(script, { mcp: { everything }, permission })
    const asked: unknown[] = []
    engine.tackle.on("permission.asked", ({ permission: type, patterns, metadata, reply }) => {
      asked.push([type, patterns, JSON.stringify(metadata).includes("Sing")])
      void reply("once")
    })
    expect(await answerOf(engine)).toMatchObject({
      role: "assistant",
      content: { type: "text", text: "La la." },
      stopReason: "endTurn",
    })
    expect(asked).toEqual([["mcp_sampling", ["everything"], true]])
    const sent = engine.server.requests[1]?.body as Record<string, unknown>
    expect(sent.max_tokens).toBe(4096)
    expect(sent.tools).toBeUndefined()
  })

  test("counts towards the usage of the run", async () => {
    const usage = { input: 10, output: 5 }
    await using engine = await startEngine(
      script.map((step) => ({ ...step, usage })),
      { mcp: { everything }, permission: { ...permission, mcp_sampling: "allow" } },
    )
    const { end } = await run(engine)
    expect(end.usage).toMatchObject({ input: 30, output: 15 })
    const stats = await engine.tackle.sessions.stats()
    expect(stats.usage).toEqual(end.usage)
    expect(stats.models).toMatchObject([{ steps: 3 }])
  })

  test("stays within the remaining limits of the run", async () => {
    const allowed = { ...permission, mcp_sampling: "allow" } as const
    const usage = { input: 10, output: 5 }
    const steps = script.map((step) => ({ ...step, usage }))
    await using engine = await startEngine([...steps, ...steps], { mcp: { everything }, permission: allowed })
    await run(engine, { maxTokens: 100 })
    const sent = engine.server.requests[1]?.body as Record<string, unknown>
    expect(sent.max_tokens).toBeGreaterThan(0)
    expect(sent.max_tokens).toBeLessThan(85)

    await using poor = await startEngine([steps[0] ?? {}, { text: "Done." }], {
      mcp: { everything },
      permission: allowed,
    })
    expect(String(await answerOf(poor, { maxTokens: 16 }))).toMatch(
      /run.s remaining token or cost limit is too small/,
    )
    expect(poor.server.requests).toHaveLength(2)
  })

  test("sends no request if a rule denies it", async () => {
    await using engine = await startEngine([script[0] ?? {}, { text: "Done." }], {
      mcp: { everything },
      permission: { ...permission, mcp_sampling: "deny" },
    })
    expect(await answerOf(engine)).toMatch(/mcp_sampling/)
    expect(engine.server.requests).toHaveLength(2)
  })
})

test("roots/list returns the worktree", async () => {
  await using engine = await startEngine(calling("get-roots-list"), { mcp: { everything }, permission })
  expect(await answerOf(engine)).toContain(pathToFileURL(engine.tackle.worktree).href)
})
