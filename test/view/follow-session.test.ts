import { expect, test } from "vitest"
import type { SessionApi, TackleApi } from "../../src/client/api.ts"
import type { SessionEvent } from "../../src/session/session-events.ts"
import { followSession } from "../../src/view/follow-session.ts"
import { type SessionState, usageOf } from "../../src/view/session-state.ts"
import { startEngine } from "../session/engine.ts"
import { scriptFor, task } from "../session/family.ts"
import { tool } from "../session/run.ts"

const note = tool("note", () => ({ title: "", output: "noted" }))

/** Follows a session. `until` resolves with the first state that meets a condition. */
async function follow(api: TackleApi, session: SessionApi, pageSize?: number) {
  const checks = new Set<() => void>()
  const followed = await followSession({
    api,
    session,
    pageSize,
    onChange() {
      for (const check of checks) check()
    },
  })
  const until = (meets: (state: SessionState) => boolean) =>
    new Promise<SessionState>((resolve) => {
      const check = () => {
        if (!meets(followed.state)) return
        checks.delete(check)
        resolve(followed.state)
      }
      checks.add(check)
      check()
    })
  return { followed, until }
}

test("loads the newest messages, follows a run, and loads older messages", async () => {
  await using engine = await startEngine(() => ({ text: "Yes." }))
  const session = await engine.tackle.sessions.create()
  for (const text of ["one", "two", "three"]) await session.prompt(text).completed
  const { followed, until } = await follow(engine.tackle, session, 2)
  expect(followed.state.messages).toEqual((await session.messages()).slice(-2))
  await session.send("four")
  const state = await until(({ lastRun }) => lastRun !== undefined)
  expect(state.messages).toEqual((await session.messages()).slice(-4))
  expect(await followed.loadOlder()).toBe(true)
  expect(await followed.loadOlder()).toBe(true)
  expect(await followed.loadOlder()).toBe(false)
  expect(followed.state.messages).toEqual(await session.messages())
  followed.close()
})

test("shows requests that already wait, also those of a subagent", async () => {
  const script = scriptFor({
    go: [{ calls: [task("look")] }, { text: "Done." }],
    look: [{ calls: [{ name: "note", arguments: {} }] }, { text: "Noted." }],
  })
  await using engine = await startEngine(script, {
    tools: [note],
    permission: { "*": "allow", note: "ask" },
    approvals: true,
  })
  const session = await engine.tackle.sessions.create()
  await session.send("go")
  const first = await follow(engine.tackle, session)
  const { requests } = await first.until((state) => state.requests.length > 0)
  const second = await follow(engine.tackle, session)
  expect(second.followed.state.requests).toEqual(requests)
  expect(requests[0]?.sessionID).not.toBe(session.id)
  await engine.tackle.reply(requests[0]?.id ?? "", { reply: "once" })
  for (const { until } of [first, second]) {
    const done = await until(({ lastRun }) => lastRun !== undefined)
    expect(done.requests).toEqual([])
    expect(done.messages).toEqual(await session.messages())
    const [child] = done.subagents.values()
    expect(child).toMatchObject({ agent: "general", parentID: session.id })
  }
})

test("loads the session again if the stream cannot continue", async () => {
  await using engine = await startEngine(() => ({ text: "Yes." }))
  const session = await engine.tackle.sessions.create()
  let streams = 0
  async function* events(options: object): AsyncGenerator<SessionEvent, undefined> {
    streams += 1
    if (streams > 1) return yield* session.events(options)
    await session.prompt("missed").completed
    yield { type: "reset", sessionID: session.id, seq: 0, reason: "behind" }
  }
  const { until } = await follow(engine.tackle, { ...session, events })
  const state = await until(({ messages }) => messages.length === 2)
  expect(state.messages).toEqual(await session.messages())
  await session.send("next")
  await until(({ messages, lastRun }) => messages.length === 4 && lastRun !== undefined)
})

test("shows a request that is made while the session is loaded", async () => {
  await using engine = await startEngine(
    ({ body: { messages } }) =>
      messages.at(-1)?.role === "user" ? { calls: [{ name: "note", arguments: {} }] } : { text: "Noted." },
    { tools: [note], permission: { "*": "allow", note: "ask" }, approvals: true },
  )
  const session = await engine.tackle.sessions.create()
  const asked = new Promise<void>((resolve) => engine.tackle.on("permission.asked", () => resolve()))
  async function messages(page?: object) {
    await session.send("go")
    await asked
    return session.messages(page)
  }
  const { followed, until } = await follow(engine.tackle, { ...session, messages })
  const { requests } = await until((state) => state.requests.length > 0)
  await engine.tackle.reply(requests[0]?.id ?? "", { reply: "once" })
  await until(({ lastRun }) => lastRun !== undefined)
  followed.close()
})

test("applies events that arrive while the session is loaded", async () => {
  await using engine = await startEngine(() => ({ text: "Yes." }))
  const session = await engine.tackle.sessions.create()
  const child = await engine.tackle.sessions.create({ parentID: session.id })
  const { tackle } = engine
  const early: TackleApi = {
    ...tackle,
    subscribe(listener) {
      listener({ type: "session.created", sessionID: child.id, time: 0, session: child.info() })
      return tackle.subscribe(listener)
    },
  }
  const { followed, until } = await follow(early, session)
  await until(({ subagents }) => subagents.has(child.id))
  followed.close()
})

test("continues after a pause with what happened in the meantime, and loads no message again", async () => {
  await using engine = await startEngine(
    ({ body: { messages } }) =>
      messages.at(-1)?.role === "user" ? { calls: [{ name: "note", arguments: {} }] } : { text: "Noted." },
    { tools: [note], permission: { "*": "allow", note: "ask" }, approvals: true },
  )
  const session = await engine.tackle.sessions.create()
  let loads = 0
  const messages = (page?: object) => {
    loads += 1
    return session.messages(page)
  }
  await session.send("one")
  const { followed, until } = await follow(engine.tackle, { ...session, messages })
  const { requests } = await until((state) => state.requests.length > 0)
  followed.pause()
  await engine.tackle.reply(requests[0]?.id ?? "", { reply: "once" })
  await session.wait()
  await session.send("two")
  await expect.poll(() => engine.tackle.pendingRequests().length).toBe(1)
  expect(followed.state.requests).toEqual(requests)
  await followed.reopen()
  const waiting = await until((state) => state.requests.length > 0)
  expect(waiting.requests[0]?.id).not.toBe(requests[0]?.id)
  expect(waiting.isRunning).toBe(true)
  await engine.tackle.reply(waiting.requests[0]?.id ?? "", { reply: "once" })
  const done = await until(({ lastRun }) => lastRun !== undefined)
  expect(done.messages).toEqual(await session.messages())
  expect(loads).toBe(1)
  followed.close()
})

test("loads the messages of a subagent that ended before", async () => {
  const script = scriptFor({
    go: [{ calls: [task("look")] }, { text: "Done." }],
    look: [{ calls: [{ name: "note", arguments: {} }] }, { text: "Noted." }],
  })
  await using engine = await startEngine(script, { tools: [note], permission: { "*": "allow" } })
  const session = await engine.tackle.sessions.create()
  await session.prompt("go").completed
  const { followed } = await follow(engine.tackle, session)
  const [[id = "", child] = []] = followed.state.subagents
  expect(child?.messages).toEqual([])
  await followed.loadSubagent(id)
  const own = await engine.tackle.sessions.get(id)
  expect(followed.state.subagents.get(id)?.messages).toEqual(await own?.messages())
  followed.close()
})

test("knows the cost of the whole session with its subagents, although it loads only a page", async () => {
  const script = scriptFor({
    go: [{ calls: [task("look")] }, { text: "Done." }],
    look: [{ calls: [{ name: "note", arguments: {} }] }, { text: "Noted." }],
    more: [{ text: "More." }],
  })
  await using server = await startEngine(script)
  const prices = { input: 1_000, output: 1_000 }
  const options = { baseURL: server.server.url, apiKey: "k" }
  await using engine = await startEngine([], {
    tools: [note],
    permission: { "*": "allow" },
    providers: { test: { options, models: { m: { cost: prices } } } },
  })
  const { tackle } = engine
  const session = await tackle.sessions.create()
  const live = await follow(tackle, session)
  await session.prompt("go").completed
  await session.prompt("more").completed
  const { cost } = (await tackle.sessions.stats({ session: session.id })).usage
  const own = (await session.messages()).reduce(
    (sum, { message }) => sum + (message.role === "assistant" ? message.cost : 0),
    0,
  )
  expect(cost).toBeGreaterThan(own)
  await live.until((state) => state.lastRun !== undefined)
  expect(usageOf(live.followed.state).cost).toBeCloseTo(cost, 8)
  live.followed.close()

  const { followed } = await follow(tackle, session, 2)
  expect(usageOf(followed.state).cost).toBeCloseTo(cost, 8)
  while (await followed.loadOlder()) expect(usageOf(followed.state).cost).toBeCloseTo(cost, 8)
  expect(followed.state.messages).toEqual(await session.messages())
  expect(usageOf(followed.state).cost).toBeCloseTo(cost, 8)
  followed.close()
})
