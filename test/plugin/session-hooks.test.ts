import { expect, test } from "vitest"
import { createTackle } from "../../src/engine/create-tackle.ts"
import type { PermissionRequest } from "../../src/schema/permission.ts"
import { temporaryProject } from "../../src/testing/project.ts"
import { resultsOf, run } from "../session/run.ts"
import { callTool, type PluginEngine, startPluginEngine } from "./engine.ts"

const plugin = (hooks: string) => `export default async ({ client }) => ({ ${hooks} })`

/** Answers permission requests and records them. */
function answer(engine: PluginEngine, reply: "once" | "reject"): PermissionRequest[] {
  const asked: PermissionRequest[] = []
  engine.tackle.on("permission.asked", (request) => {
    const { reply: give, ...plain } = request
    asked.push(plain)
    void give(reply)
  })
  return asked
}

const say = `tool: { say: { description: "Says", args: { text: { type: "string" } }, execute: async ({ text }) => text } }`
const permissionOf = (status: string) =>
  `"permission.ask": async (input, output) => { if (input.type === "say") output.status = ${status} }`

test("permission.ask allows or denies a question instead of the user", async () => {
  await using engine = await startPluginEngine({
    files: {
      "a.mjs": plugin(`${say}, ${permissionOf('input.metadata.input.text === "yes" ? "allow" : "deny"')}`),
    },
    permission: { "*": "allow", say: "ask" },
  })
  const asked = answer(engine, "reject")
  expect(await callTool(engine.tackle, "say", { text: "yes" })).toBe("yes")
  expect(await callTool(engine.tackle, "say", { text: "no" })).toMatch(/a plugin refused say/)
  expect(asked).toEqual([])
})

test("permission.ask turns an allowed request into a question or a refusal", async () => {
  await using engine = await startPluginEngine({
    files: { "a.mjs": plugin(`${say}, ${permissionOf("input.metadata.input.text")}`) },
  })
  const asked = answer(engine, "once")
  expect(await callTool(engine.tackle, "say", { text: "ask" })).toBe("ask")
  expect(asked).toMatchObject([{ permission: "say" }])
  expect(await callTool(engine.tackle, "say", { text: "deny" })).toMatch(/a plugin refused/)
  expect(await callTool(engine.tackle, "say", { text: "allow" })).toBe("allow")
  expect(asked).toHaveLength(1)
})

test("permission.ask cannot loosen a deny", async () => {
  await using engine = await startPluginEngine({
    files: {
      "a.mjs": plugin(
        `"permission.ask": (input, output) => { output.status = "allow"; input.pattern.length = 0 }`,
      ),
    },
    others: { "secret.txt": "secret" },
    permission: { "*": "allow", read: { "*": "allow", "secret.txt": "deny" } },
  })
  expect(await callTool(engine.tackle, "read", { filePath: "secret.txt" })).toContain("denied by a rule")
})

test("asks an allowed request if permission.ask fails", async () => {
  for (const rule of ["allow", "ask"] as const) {
    await using engine = await startPluginEngine({
      files: { "a.mjs": plugin(`${say}, "permission.ask": async () => { throw new Error("boom") }`) },
      permission: { "*": "allow", say: rule },
    })
    const asked = answer(engine, "reject")
    expect(await callTool(engine.tackle, "say", { text: "x" })).toContain("user refused")
    expect(asked).toHaveLength(1)
    expect(engine.problems).toHaveLength(1)
  }
})

test("permission.ask cannot answer doom_loop", async () => {
  const call = { name: "say", arguments: { text: "x" } }
  await using engine = await startPluginEngine({
    files: { "a.mjs": plugin(`${say}, "permission.ask": (_, output) => { output.status = "allow" }`) },
    permission: { "*": "allow", doom_loop: "ask" },
    script: [{ calls: [call] }, { calls: [call] }, { calls: [call] }, { text: "Done." }],
  })
  const asked = answer(engine, "reject")
  await run(engine)
  expect(asked).toMatchObject([{ permission: "doom_loop" }])
})

test("tool.definition changes definitions, chat.params and chat.headers the request", async () => {
  await using engine = await startPluginEngine({
    files: {
      "a.mjs": plugin(`
        "tool.definition": async ({ toolID }, output) => {
          if (toolID !== "read") return
          output.description = "Reads, says the plugin"
          output.parameters.properties.filePath.description = "Which"
        },
        "chat.params": async (input, output) => {
          output.temperature = 0.25
          output.topP = 0.5
          output.maxOutputTokens = 77
          output.options.user = input.agent + " " + input.model.id
        },
        "chat.headers": async (_, output) => { output.headers["x-plugin"] = "yes" }`),
    },
  })
  await run(engine)
  const [request] = engine.server.requests
  const read = request?.body.tools?.find((tool) => tool.function.name === "read")?.function
  expect(read?.description).toBe("Reads, says the plugin")
  expect(JSON.stringify(read?.parameters)).toContain('"description":"Which"')
  expect(request?.body).toMatchObject({ temperature: 0.25, top_p: 0.5, max_tokens: 77, user: "build m" })
  expect(request?.headers["x-plugin"]).toBe("yes")
})

test("chat.message changes and adds parts, which are stored and sent", async () => {
  await using engine = await startPluginEngine({
    files: {
      "a.mjs": plugin(`"chat.message": async ({ sessionID }, { message, parts }) => {
        parts[0].text += " please"
        parts.push({ type: "text", text: "added for " + message.agent, synthetic: true })
        const before = await client.session.messages({ path: { id: sessionID } })
        parts.push({ type: "text", text: "before: " + before.data.length })
      }`),
    },
  })
  const { session } = await run(engine, { text: "go" })
  const [user] = await session.messages()
  expect(user?.parts.map((part) => (part.type === "text" ? part.text : part.type))).toEqual([
    "go please",
    "added for build",
    "before: 0",
  ])
  expect(new Set(user?.parts.map(({ id }) => id)).size).toBe(3)
  expect(JSON.stringify(engine.server.requests[0]?.body.messages)).toContain("added for build")
})

test("disables a chat.message with invalid parts and keeps the message", async () => {
  await using engine = await startPluginEngine({
    files: { "a.mjs": plugin(`"chat.message": async (_, output) => { output.parts = [{ type: "tool" }] }`) },
  })
  const { session, end } = await run(engine, { text: "go" })
  expect(end.exitCode).toBe(0)
  expect((await session.messages())[0]?.parts).toMatchObject([{ type: "text", text: "go" }])
  expect(engine.problems).toHaveLength(1)
})

test("session.compacting extends or replaces the summary prompt, also by OpenCode's name", async () => {
  await using engine = await startPluginEngine({
    files: {
      "a.mjs": plugin(
        `"experimental.session.compacting": async (_, output) => { output.context.push("Keep the names.") }`,
      ),
      "b.mjs": plugin(
        `"session.compacting": async (_, output) => { output.prompt = "Sum it up in my way." }`,
      ),
    },
    script: [{ text: "An answer. ".repeat(200) }, { text: "Short." }],
  })
  const { session } = await run(engine, { text: "A question. ".repeat(200) })
  await session.compact()
  expect(engine.server.requests[1]?.body.messages[0]?.content).toBe("Sum it up in my way.\n\nKeep the names.")
})

test("transforms change the request but not the stored messages; text.complete changes the stored text", async () => {
  await using engine = await startPluginEngine({
    files: {
      "a.mjs": plugin(`
        "experimental.chat.messages.transform": async (_, { messages }) => {
          for (const { parts } of messages)
            for (const part of parts)
              if (part.type === "tool" && part.state.status === "completed") part.state.output = "[left out]"
          messages.at(-1).parts.push({ type: "text", text: "added for the model" })
        },
        "experimental.chat.system.transform": async ({ model }, { system }) => {
          system.push("You are " + model.id)
        },
        "experimental.text.complete": async (_, output) => { output.text = output.text.toUpperCase() }`),
    },
    script: [
      { text: "I look. ", calls: [{ name: "read", arguments: { filePath: "a.txt" } }] },
      { text: "Done." },
    ],
    others: { "a.txt": "plain words" },
  })
  const { session, end } = await run(engine, { text: "go" })
  const [first, second] = engine.server.requests.map(({ body }) => JSON.stringify(body.messages))
  expect(first).toContain("You are m")
  expect(first).toContain("added for the model")
  expect(second).toContain("[left out]")
  expect(second).toContain("I LOOK.")
  expect(second).not.toContain("plain words")
  expect(end.text).toBe("DONE.")
  const stored = JSON.stringify(await session.messages())
  expect(stored).toContain("plain words")
  expect(stored).not.toContain("added for the model")
})

test("disables a broken transform and sends the unchanged messages", async () => {
  await using engine = await startPluginEngine({
    files: {
      "a.mjs": plugin(`
        "experimental.chat.messages.transform": async (_, output) => { output.messages = [{ parts: [] }] }`),
      "b.mjs": plugin(`"experimental.text.complete": async () => { throw new Error("boom") }`),
    },
  })
  const { end } = await run(engine, { text: "go" })
  expect(end).toMatchObject({ exitCode: 0, text: "Done." })
  expect(JSON.stringify(engine.server.requests[0]?.body.messages)).toContain("go")
  expect(engine.problems).toHaveLength(2)
})

test("shell.env sets variables, but no unsafe ones", async () => {
  await using engine = await startPluginEngine({
    files: {
      "a.mjs": plugin(`"shell.env": async ({ cwd }, output) => {
        output.env.PLACE = cwd
        output.env.PATH = "/nowhere"
        output.env.LD_PRELOAD = "/nowhere.so"
        output.env.NODE_OPTIONS = "--require /nowhere.js"
      }`),
    },
  })
  const command = 'echo "$PLACE-$LD_PRELOAD$NODE_OPTIONS-"; cat /dev/null'
  expect(await callTool(engine.tackle, "bash", { command })).toContain(`${engine.project.directory}--`)
  await callTool(engine.tackle, "bash", { command })
  expect(engine.problems).toEqual([
    expect.stringMatching(/PATH \(it .*\), LD_PRELOAD \(it .*\), NODE_OPTIONS \(it loads code into Node\)/),
  ])
})

test("event receives events in OpenCode's format and order, and is disabled if it throws", async () => {
  await using engine = await startPluginEngine({
    files: {
      "a.mjs": `export const heard = globalThis.heard = []
        export default async () => ({ event: async ({ event }) => { heard.push(event) } })`,
      "b.mjs": plugin(
        `event: async ({ event }) => { if (event.type === "session.idle") throw new Error("boom") }`,
      ),
    },
    script: [{ calls: [{ name: "read", arguments: { filePath: "a.txt" } }] }, { text: "Done." }],
    others: { "a.txt": "a" },
  })
  const { session } = await run(engine)
  const heard = () =>
    Reflect.get(globalThis, "heard") as { type: string; properties: Record<string, unknown> }[]
  await expect.poll(() => heard().at(-1)?.type).toBe("session.idle")
  const types = heard().map(({ type }) => type)
  expect(types[0]).toBe("session.created")
  expect(types).toEqual(expect.arrayContaining(["message.updated", "message.part.updated", "session.status"]))
  expect(heard().every(({ properties }) => properties.sessionID === session.id)).toBe(true)
  const tool = heard().findLast(
    ({ properties: { part } }) => (part as { type?: string } | undefined)?.type === "tool",
  )
  expect(tool?.properties.part).toMatchObject({ tool: "read", state: { status: "completed" } })
  await expect
    .poll(() => engine.problems)
    .toEqual([expect.stringContaining("b.mjs failed in its hook event: boom")])
})

test("finishes pending events before the engine closes", async () => {
  const engine = await startPluginEngine({
    files: {
      "a.mjs": `export default async ({ $ }) => ({ event: async ({ event }) => {
        if (event.type === "session.idle") globalThis.said = await $\`sleep 0.2; echo at the end\`.text()
      } })`,
    },
  })
  await run(engine)
  await engine[Symbol.asyncDispose]()
  expect(Reflect.get(globalThis, "said")).toBe("at the end\n")
  expect(engine.problems).toEqual([])
})

test("config adds an agent, a provider and a model, and other keys are reported", async () => {
  await using engine = await startPluginEngine({
    files: {
      "a.mjs": plugin(`config: async (config) => {
        config.agent.poet = { description: "Writes verse", prompt: "You rhyme.", mode: "primary", permission: { bash: "allow" } }
        config.provider.own = { ...config.provider.test, models: { n: { modalities: { input: ["text"] } } } }
        config.model = "own/n"
        config.command.sing = { template: "sing" }
        config.permission = { "*": "allow" }
      }`),
      "b.mjs": plugin(`config: async (config) => { config.agent = 7 }`),
    },
    permission: { "*": "ask" },
  })
  const problems = engine.tackle
    .problems()
    .map(({ file, message }) => `${file.replace(/.*\//, "")}: ${message}`)
  expect(problems).toEqual(
    expect.arrayContaining([
      expect.stringContaining('"command"'),
      expect.stringContaining('"permission"'),
      expect.stringMatching(/^b\.mjs: .*invalid "agent"/),
    ]),
  )
  expect(engine.tackle.models().map(({ ref }) => `${ref.providerID}/${ref.modelID}`)).toContain("own/n")
  const { end } = await run(engine)
  expect(end.exitCode).toBe(0)
  expect(engine.server.requests[0]?.body.model).toBe("n")
})

test("offers an agent of a plugin, limited by the user's rules", async () => {
  await using engine = await startPluginEngine({
    files: {
      "a.mjs": plugin(`config: async (config) => {
        config.agent.poet = { prompt: "You rhyme.", permission: { bash: "allow" } }
      }`),
    },
    permission: { "*": "allow", bash: "deny" },
    script: [{ calls: [{ name: "bash", arguments: { command: "echo hi" } }] }, { text: "Done." }],
  })
  const session = await engine.tackle.sessions.create({ agent: "poet" })
  await run(engine, { session })
  expect((await resultsOf(session))[0]).toContain("unavailable")
  expect(JSON.stringify(engine.server.requests[0]?.body.messages[0])).toContain("You rhyme.")
})

test.each([
  { name: "adds another agent", code: 'config.agent.poet = { prompt: "You rhyme." }' },
  { name: "changes that agent", code: "config.agent.build = { temperature: 0, tools: { bash: true } }" },
  { name: "removes it", code: "delete config.agent.build" },
])("keeps a tool disabled for an agent if a plugin $name", async ({ code }) => {
  await using engine = await startPluginEngine({
    files: { "a.mjs": plugin(`config: async (config) => { ${code} }`) },
    agents: { build: { tools: { bash: false } } },
  })
  expect(engine.tackle.problems()).toEqual([])
  const offered = await engine.tackle.tools()
  expect(offered.find(({ id }) => id === "bash")?.reason).toMatch(/the permission rules deny it/)
  expect(offered.find(({ id }) => id === "read")).toMatchObject({ offered: true })
})

test("config gets a copy, which can contain functions", async () => {
  const shout = (text: string) => text.toUpperCase()
  await using engine = await startPluginEngine({
    files: {
      "a.mjs": `export default async ({ client }) => {
        const { data } = await client.config.get()
        const said = data.provider.odd.options.shout("heard")
        data.provider.odd.options = {}
        const again = (await client.config.get()).data.provider.odd.options.shout("again")
        if (said + again !== "HEARDAGAIN") throw new Error("not the config: " + said + again)
        return {}
      }`,
    },
    providers: { odd: { options: { shout } } },
  })
  expect(engine.tackle.problems()).toEqual([])
})

test("an unsupported client method fails when it is called", async () => {
  await using engine = await startPluginEngine({
    files: {
      "a.mjs": `export default async ({ client }) => {
        const later = client.session.share
        await client
        await client.app.log({ body: { service: "x", level: "warn", message: "noted" } })
        return { tool: { share: { description: "x", args: {}, execute: () => later({ path: { id: "x" } }) } } }
      }`,
    },
    onPluginLog: (entry) => noted.push(entry),
  })
  expect(await callTool(engine.tackle, "share", {})).toContain("does not support session.share()")
  expect(noted).toMatchObject([{ level: "warn", message: "noted" }])
})
const noted: unknown[] = []

test("dispose is called when the engine closes", async () => {
  const engine = await startPluginEngine({
    files: { "a.mjs": plugin("dispose: async () => { globalThis.disposed = true }") },
  })
  await engine[Symbol.asyncDispose]()
  expect(Reflect.get(globalThis, "disposed")).toBe(true)
})

test("dispose is called if the engine cannot be opened", async () => {
  const project = await temporaryProject({
    ".data/tackle.db": "a file of another program",
    ".tackle/plugin/a.mjs": plugin("dispose: async () => { globalThis.disposedUnopened = true }"),
  })
  const path = project.path(".tackle/plugin/a.mjs")
  const opening = createTackle({
    directory: project.directory,
    dataDirectory: project.path(".data"),
    plugins: [{ name: path, path }],
  })
  await expect(opening).rejects.toThrow("tackle.db")
  expect(Reflect.get(globalThis, "disposedUnopened")).toBe(true)
  await project.remove()
})
