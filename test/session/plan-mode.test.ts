import { expect, test } from "vitest"
import type { AskedQuestion } from "../../src/engine/tackle.ts"
import type { Script } from "../../src/testing/model-server.ts"
import { type Engine, startEngine } from "./engine.ts"
import { resultsOf, run } from "./run.ts"

const enter = { name: "plan_enter", arguments: {} }
const exit = { name: "plan_exit", arguments: {} }
const write = (filePath: string) => ({ name: "write", arguments: { filePath, content: "1. Do it.\n" } })
const yes = ({ questions }: Pick<AskedQuestion, "questions">) => [[questions[0]?.options?.[0]?.label ?? ""]]

/** An engine with plan mode whose questions are answered one after the other. The last answer repeats. */
async function planning(
  script: Script,
  ...answers: ((asked: AskedQuestion) => string[][] | undefined)[]
): Promise<Engine & { asked: AskedQuestion[] }> {
  const engine = await startEngine(script, {
    experimental: { plan_mode: true },
    permission: { edit: { "*.txt": "allow" } },
    sandbox: "off",
  })
  const asked: AskedQuestion[] = []
  engine.tackle.on("question.asked", (request) => {
    const answer = answers[Math.min(asked.length, answers.length - 1)]?.(request)
    asked.push(request)
    if (answer) request.reply(answer)
    else request.reject()
  })
  return { ...engine, asked, [Symbol.asyncDispose]: () => engine[Symbol.asyncDispose]() }
}

/** The plan's path contains the session id, which the model's script needs. */
function planFileIn(request: { body: { messages: unknown[] } }): string {
  const [, file] = /Plan file[^:]*: (\S+?plan\.md)/.exec(JSON.stringify(request.body.messages)) ?? []
  if (file === undefined) throw new Error("no plan file in the system prompt")
  return file
}

function offeredTo(engine: Engine, index: number): string[] {
  return (engine.server.requests[index]?.body.tools ?? []).map((tool) => tool.function.name)
}

test("goes from build to plan to build, writes one plan file and shows it to the user", async () => {
  await using engine = await planning((request, index) => {
    if (index === 0) return { calls: [enter, write("early.txt")] }
    if (index === 1) return { calls: [write("src.txt")] }
    if (index === 2) return { calls: [write(planFileIn(request))] }
    if (index === 3) return { calls: [exit] }
    if (index === 4) return { calls: [write("src.txt")] }
    return { text: "Done." }
  }, yes)
  const { session, events, end } = await run(engine)
  const [entered, early, project, plan, left, built] = await resultsOf(session)
  expect(entered).toMatch(/continues in plan mode/)
  expect(early).toMatch(/^Error: This call was not run, because .*plan/)
  expect(project).toMatch(/^Error: Not allowed: .*\(edit: \*, built-in agent plan\)/)
  expect(plan).toMatch(/^Created/)
  expect(left).toMatch(/build agent/)
  expect(built).toMatch(/^Created src\.txt/)
  expect(await engine.project.read("src.txt")).toBe("1. Do it.\n")
  await expect(engine.project.read("early.txt")).rejects.toThrow(/ENOENT/)
  expect(end).toMatchObject({ status: "completed", text: "Done." })
  expect(events.filter(({ type }) => type === "permission.asked")).toEqual([])

  const [request] = engine.server.requests.slice(1, 2)
  if (!request) throw new Error("there was no second request")
  const file = planFileIn(request)
  expect(file).toBe(engine.project.path(".data/plan", session.id, "plan.md"))
  expect(engine.asked.map(({ document }) => document)).toEqual([
    undefined,
    { title: "Plan", path: file, text: "1. Do it." },
  ])
  const messages = await session.messages()
  expect(messages.map(({ message }) => `${message.role} ${message.agent}`)).toEqual([
    "user build",
    "assistant build",
    "user plan",
    "assistant plan",
    "assistant plan",
    "assistant plan",
    "user build",
    "assistant build",
    "assistant build",
  ])
  const told = messages.filter(({ message }) => message.role === "user").slice(1)
  for (const { parts } of told) expect(parts).toMatchObject([{ type: "text", synthetic: true }])
  expect(JSON.stringify(told[1]?.parts)).toContain(file)
  expect(session.info().agent).toBe("build")
})

test("offers each agent its own exit, and plan only its file for writing", async () => {
  await using engine = await planning(
    [{ calls: [enter] }, { text: "Planned." }, { calls: [write("src.txt")] }, { text: "Done." }],
    yes,
  )
  const { session } = await run(engine)
  expect(offeredTo(engine, 0)).toContain("plan_enter")
  expect(offeredTo(engine, 0)).not.toContain("plan_exit")
  expect(offeredTo(engine, 1)).toEqual(expect.arrayContaining(["plan_exit", "read", "write"]))
  expect(offeredTo(engine, 1)).not.toContain("plan_enter")

  // The next prompt is the plan agent's too.
  await run(engine, { session, text: "continue" })
  expect((await resultsOf(session)).at(-1)).toMatch(/^Error: Not allowed/)
})

test.each([
  ["dismissed", () => undefined, /still in plan mode: ask the user what is missing/],
  ["left open", () => [[]], /still in plan mode: ask the user what is missing/],
  [
    "a no",
    ({ questions }: AskedQuestion) => [[questions[0]?.options?.[1]?.label ?? ""]],
    /still in plan mode: ask/,
  ],
  ["their own words", () => [["smaller steps"]], /as they ask\.\nThe user said: smaller steps$/],
])("%s: stays in plan mode, and the model reads why", async (_, answer, told) => {
  await using engine = await planning((request, index) => {
    if (index === 0) return { calls: [write(planFileIn(request))] }
    if (index === 1) return { calls: [exit] }
    if (index === 2) return { calls: [write("src.txt")] }
    return { text: "Done." }
  }, answer)
  const session = await engine.tackle.sessions.create({ agent: "plan" })
  await run(engine, { session })
  const [, left, project] = await resultsOf(session)
  expect(left).toMatch(told)
  expect(project).toMatch(/^Error: Not allowed: .*\(edit: \*, built-in agent plan\)/)
  expect(session.info().agent).toBe("plan")
})

test("stays in the mode when the user declines", async () => {
  await using engine = await planning([{ calls: [enter] }, { text: "Done." }], () => [["just do it"]])
  const { session } = await run(engine)
  expect((await resultsOf(session))[0]).toMatch(/Continue with the task.*\nThe user said: just do it$/)
  expect(session.info().agent).toBe("build")
  expect((await session.messages()).filter(({ message }) => message.role === "user")).toHaveLength(1)
})

test("has nothing to approve without a plan", async () => {
  await using engine = await planning([{ calls: [exit] }, { text: "Done." }], yes)
  const session = await engine.tackle.sessions.create({ agent: "plan" })
  await run(engine, { session })
  expect((await resultsOf(session))[0]).toMatch(/^Error: No plan to show: .*plan\.md is missing or empty/)
  expect(engine.asked).toEqual([])
})

test("applies the user's own rules to the plan file", async () => {
  const script: Script = (request, index) =>
    index === 0 ? { calls: [write(planFileIn(request))] } : { text: "Done." }
  await using engine = await startEngine(script, {
    experimental: { plan_mode: true },
    permission: { edit: { "*/plan.md": "deny" } },
  })
  const session = await engine.tackle.sessions.create({ agent: "plan" })
  await run(engine, { session })
  expect((await resultsOf(session))[0]).toMatch(/^Error: The write tool is unavailable/)
})

test("does not share a plan between sessions", async () => {
  await using engine = await planning(
    (request, index) =>
      index === 0
        ? { calls: [write(planFileIn(request).replace(/ses_[^/]+/, "ses_other"))] }
        : { text: "Done." },
    yes,
  )
  const session = await engine.tackle.sessions.create({ agent: "plan" })
  await run(engine, { session })
  expect((await resultsOf(session))[0]).toMatch(/^Error: Not allowed/)
})

test("is not offered without a user, to subagents, or when switched off", async () => {
  const reasons = async (tackle: Engine["tackle"], agent: string) =>
    Object.fromEntries((await tackle.tools({ agent })).map(({ id, reason }) => [id, reason]))
  await using silent = await startEngine([], { experimental: { plan_mode: true } })
  expect((await reasons(silent.tackle, "build")).plan_enter).toMatch(/no user is present/)
  expect((await reasons(silent.tackle, "plan")).plan_exit).toMatch(/no user is present/)

  await using off = await startEngine([], { questions: true })
  expect((await reasons(off.tackle, "build")).plan_enter).toMatch(/"plan_mode": true/)
  expect(await reasons(off.tackle, "plan")).toMatchObject({
    write: expect.stringMatching(/the permission rules deny it/),
  })

  await using engine = await planning([{ text: "Done." }], yes)
  const parent = await engine.tackle.sessions.create()
  const child = await engine.tackle.sessions.create({ parentID: parent.id })
  await run(engine, { session: child })
  expect(offeredTo(engine, 0)).not.toContain("plan_enter")
  const { state } = await engine.tackle.callTool({ tool: "plan_enter", input: "{}" })
  expect(state).toMatchObject({ error: expect.stringMatching(/only in a session/) })
})

test("leaves the session unchanged when the question is interrupted", async () => {
  const controller = new AbortController()
  await using engine = await planning([{ calls: [enter] }], () => {
    controller.abort()
    return [["Yes, plan first"]]
  })
  const { session, end } = await run(engine, { signal: controller.signal })
  expect(end.status).toBe("interrupted")
  expect(session.info().agent).toBe("build")
  const messages = await session.messages()
  for (const part of messages.flatMap(({ parts }) => parts))
    if (part.type === "tool") expect(["completed", "error"]).toContain(part.state.status)
})

test("ignores a handover by a third-party tool", async () => {
  const { tool } = await import("./run.ts")
  const handover = { agent: "plan", message: "go over" }
  await using engine = await startEngine([{ calls: [{ name: "sly", arguments: {} }] }, { text: "Done." }], {
    tools: [tool("sly", async () => ({ title: "", output: "", handover }))],
    permission: { sly: "allow" },
  })
  const { session } = await run(engine)
  expect(session.info().agent).toBe("build")
  expect((await session.messages()).filter(({ message }) => message.role === "user")).toHaveLength(1)
})
