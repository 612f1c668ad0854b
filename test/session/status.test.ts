import { expect, test } from "vitest"
import { createTackle } from "../../src/engine/create-tackle.ts"
import { startEngine } from "./engine.ts"
import { scriptFor, task } from "./family.ts"
import { tool } from "./run.ts"

const question = {
  name: "question",
  arguments: { questions: [{ question: "Which one?", options: [{ label: "left" }, { label: "right" }] }] },
}

test("is undefined for an unknown session", async () => {
  await using engine = await startEngine([])
  expect(await engine.tackle.sessions.status("ses_none")).toBeUndefined()
})

test("is running from the time an input is sent until the run ends", async () => {
  await using engine = await startEngine(() => ({ text: "Done." }))
  const { sessions } = engine.tackle
  const session = await sessions.create()
  expect(await sessions.status(session.id)).toBe("idle")
  await session.send("go")
  expect(await sessions.status(session.id)).toBe("running")
  await session.wait()
  expect(await sessions.status(session.id)).toBe("idle")
  const run = session.prompt("go")
  expect(await sessions.status(session.id)).toBe("running")
  await run.completed
  await session.wait()
  expect(await sessions.status(session.id)).toBe("idle")
})

test("is waiting while a request of the session or of a subagent below it is pending", async () => {
  const act = tool("act", () => ({ title: "", output: "acted" }))
  await using engine = await startEngine(
    scriptFor({
      go: [{ calls: [question] }, { calls: [task("sub")] }, { text: "Done." }],
      sub: [{ calls: [{ name: "act", arguments: {} }] }, { text: "Sub done." }],
    }),
    { tools: [act], permission: { "*": "allow", act: "ask" }, questions: true },
  )
  const { sessions, questions } = engine.tackle
  const session = await sessions.create()
  const other = await sessions.create()
  const questioned = new Promise<string>((resolve) =>
    engine.tackle.on("question.asked", ({ id }) => resolve(id)),
  )
  const asked = new Promise<{ id: string; sessionID: string }>((resolve) =>
    engine.tackle.on("permission.asked", resolve),
  )
  await session.send("go")
  const questionID = await questioned
  expect(await sessions.status(session.id)).toBe("waiting")
  questions.reply(questionID, [["left"]])
  const request = await asked
  expect(request.sessionID).not.toBe(session.id)
  expect(await sessions.status(session.id)).toBe("waiting")
  expect(await sessions.status(request.sessionID)).toBe("waiting")
  expect(await sessions.status(other.id)).toBe("idle")
  await engine.tackle.reply(request.id, { reply: "once" })
  await session.wait()
  expect(await sessions.status(session.id)).toBe("idle")
})

test("is running while another engine uses the session", async () => {
  const started = Promise.withResolvers<void>()
  const go = Promise.withResolvers<void>()
  const wait = tool("wait", async () => {
    started.resolve()
    await go.promise
    return { title: "", output: "" }
  })
  await using engine = await startEngine([{ calls: [{ name: "wait", arguments: {} }] }, { text: "Done." }], {
    tools: [wait],
    permission: { "*": "allow" },
  })
  const { directory, store } = engine.tackle
  const options = { directory, dataDirectory: engine.project.path(".data"), store, model: "tackle/offline" }
  const other = await createTackle(options)
  const session = await engine.tackle.sessions.create()
  await session.send("go")
  await started.promise
  expect(await other.sessions.status(session.id)).toBe("running")
  go.resolve()
  await session.wait()
  expect(await other.sessions.status(session.id)).toBe("idle")
  await other.close()
})
