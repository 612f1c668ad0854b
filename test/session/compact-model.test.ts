import { expect, test } from "vitest"
import type { TackleOptions } from "../../src/engine/options.ts"
import { startEngine } from "./engine.ts"
import { run } from "./run.ts"

const long = { text: "word ".repeat(2_000) }

/** Returns the model that summarizes a session whose history came from `m`. */
async function whoSumsUp(options: Partial<TackleOptions>, session: { agent?: string; model?: string } = {}) {
  await using engine = await startEngine(
    ({ body }) =>
      JSON.stringify(body.messages[0]).includes("Summarize the work") ? { text: "SUMMARY" } : long,
    { permission: { "*": "allow" }, ...options },
  )
  const { sessions } = engine.tackle
  const first = await run(engine, { session: await sessions.create({ model: "test/m" }) })
  const archive = (await sessions.export(first.session.id)) ?? expect.fail()
  // The same history in a session with another model, or none.
  const { model: _, ...rest } = archive.session
  const [providerID = "", modelID = ""] = session.model?.split("/") ?? []
  const other = await sessions.import(
    {
      ...archive,
      session: {
        ...rest,
        agent: session.agent ?? rest.agent,
        ...(session.model ? { model: { providerID, modelID } } : {}),
      },
    },
    { copy: true },
  )
  const before = engine.server.requests.length
  expect(await other.compact()).toMatchObject({ summarized: true })
  return engine.server.requests.slice(before).map(({ body }) => body.model)
}

const agents: TackleOptions["agents"] = {
  careful: { model: { providerID: "test", modelID: "gpt-5" }, description: "careful", mode: "primary" },
}

test("summarizes with the session's own model, whatever the config and agent name", async () => {
  expect(await whoSumsUp({ model: "test/m" }, { model: "test/gpt-5" })).toEqual(["gpt-5"])
  expect(await whoSumsUp({ agents, model: "test/gpt-5" }, { agent: "careful", model: "test/m" })).toEqual([
    "m",
  ])
})

test("falls back to the agent's model, then to the config's", async () => {
  expect(await whoSumsUp({ agents, model: "test/m" }, { agent: "careful" })).toEqual(["gpt-5"])
  expect(await whoSumsUp({ agents, model: "test/gpt-5" })).toEqual(["gpt-5"])
  expect(await whoSumsUp({ agents, model: "test/m" })).toEqual(["m"])
})

test("records the model of the summary and keeps the session's model", async () => {
  await using engine = await startEngine(
    ({ body }) =>
      JSON.stringify(body.messages[0]).includes("Summarize the work") ? { text: "SUMMARY" } : long,
    { permission: { "*": "allow" } },
  )
  const { session } = await run(engine, { model: "test/gpt-5" })
  await session.compact()
  const last = (await session.messages()).at(-1)
  expect(last?.message).toMatchObject({ model: { providerID: "test", modelID: "gpt-5" } })
  expect(session.info().model).toEqual({ providerID: "test", modelID: "gpt-5" })
})
