import { createOpencodeClient, type Event, type OpencodeClient } from "@opencode-ai/sdk/v2/client"
import { expect, test } from "vitest"
import type { Script } from "../../src/testing/model-server.ts"
import { setUp, tokens } from "./start-server.ts"

const script: Script = ({ body: { messages } }) =>
  messages.at(-1)?.role === "user"
    ? {
        text: "One moment.",
        calls: [{ name: "write", arguments: { filePath: "made.txt", content: "made" } }],
        pieceSize: 3,
        pieceDelayMs: 5,
      }
    : { text: "It is done.", pieceSize: 4, pieceDelayMs: 5 }

async function openClient(answers: Script, permission: Record<string, "ask" | "allow" | "deny">) {
  const { server, project, directory } = await setUp(answers, { engine: { permission } })
  const client = createOpencodeClient({
    baseUrl: `${server.url}/opencode`,
    headers: { authorization: `Bearer ${tokens.admin}` },
    directory,
    throwOnError: true,
  })
  return { client, project, server }
}

/** Collects the events of a client until the test ends it. */
async function follow(client: OpencodeClient) {
  const leave = new AbortController()
  const events: Event[] = []
  const { stream } = await client.event.subscribe({}, { signal: leave.signal })
  const reading = (async () => {
    for await (const event of stream) events.push(event as Event)
  })().catch(() => {})
  await expect.poll(() => events[0]?.type).toBe("server.connected")
  return {
    events,
    async sees(type: Event["type"]) {
      await expect.poll(() => events.some((event) => event.type === type), { timeout: 20_000 }).toBe(true)
      return events.findLast((event) => event.type === type)
    },
    async leave() {
      leave.abort()
      await reading
    },
  }
}

/** Builds the text of each part from the events alone. */
function textsIn(events: readonly Event[]): string[] {
  const texts = new Map<string, string>()
  const users = new Set<string>()
  for (const event of events) {
    if (event.type === "message.updated" && event.properties.info.role === "user")
      users.add(event.properties.info.id)
    if (event.type === "message.part.updated") {
      const { part } = event.properties
      if (part.type === "text" && !users.has(part.messageID)) texts.set(part.id, part.text)
    }
    if (event.type === "message.part.delta") {
      const { partID, delta } = event.properties
      texts.set(partID, (texts.get(partID) ?? "") + delta)
    }
  }
  return [...texts.values()]
}

test("OpenCode's client finishes a task with an answered permission", async () => {
  const { client, project } = await openClient(script, { edit: "ask" })
  const { data: session } = await client.session.create({ title: "First" })
  const stream = await follow(client)
  await client.session.promptAsync({
    sessionID: session?.id ?? "",
    parts: [{ type: "text", text: "make a file" }],
  })
  const asked = await stream.sees("permission.asked")
  const { data: pending } = await client.permission.list()
  expect(pending).toMatchObject([{ permission: "edit", sessionID: session?.id }])
  expect(asked?.properties).toMatchObject({ id: pending?.[0]?.id })
  const { data: statuses } = await client.session.status()
  expect(statuses).toEqual({ [session?.id ?? ""]: { type: "busy" } })
  await client.permission.reply({ requestID: pending?.[0]?.id ?? "", reply: "once" })
  await stream.sees("session.idle")
  expect(await project.read("made.txt")).toBe("made")
  expect(textsIn(stream.events)).toEqual(["One moment.", "It is done."])
  const { data: messages } = await client.session.messages({ sessionID: session?.id ?? "" })
  expect(messages?.map(({ info }) => info.role)).toEqual(["user", "assistant", "assistant"])
  expect(messages?.[1]?.info).toMatchObject({ providerID: "test", modelID: "m", mode: "build" })
  await stream.leave()
})

test("OpenCode's client that joins in the middle of a text receives the text so far", async () => {
  const text = Array.from({ length: 100 }, (_, index) => `word${index} `).join("")
  const { client } = await openClient([{ text, pieceSize: 8, pieceDelayMs: 20 }], {})
  const { data: session } = await client.session.create({})
  const first = await follow(client)
  await client.session.promptAsync({
    sessionID: session?.id ?? "",
    parts: [{ type: "text", text: "count" }],
  })
  await first.sees("message.part.delta")
  const second = await follow(client)
  await second.sees("session.idle")
  const [joined] = second.events.filter(({ type }) => type !== "server.connected")
  expect(joined).toMatchObject({
    type: "message.part.updated",
    properties: { part: { type: "text", text: expect.stringMatching(/^word0 /), sessionID: session?.id } },
  })
  // The final state of the part must not hide a missing delta.
  const streamed = second.events.filter((event) => event === joined || event.type === "message.part.delta")
  expect(textsIn(streamed)).toEqual([text])
  await first.leave()
  await second.leave()
})

test("OpenCode's client waits for an answer, reverts it and reverses that", async () => {
  const { client, project } = await openClient(script, { "*": "allow" })
  const { data: session } = await client.session.create({})
  const sessionID = session?.id ?? ""
  const { data: answer } = await client.session.prompt({
    sessionID,
    parts: [{ type: "text", text: "make a file" }],
  })
  expect(answer?.parts).toContainEqual(expect.objectContaining({ type: "text", text: "It is done." }))
  const { data: messages } = await client.session.messages({ sessionID })
  const messageID = messages?.[0]?.info.id ?? ""
  const { data: reverted } = await client.session.revert({ sessionID, messageID })
  expect(reverted?.revert).toEqual({ messageID })
  await expect(project.read("made.txt")).rejects.toThrow()
  const { data: restored } = await client.session.unrevert({ sessionID })
  expect(restored?.revert).toBeUndefined()
  expect(await project.read("made.txt")).toBe("made")
})

test("OpenCode's client lists, renames, forks and deletes sessions", async () => {
  const { client } = await openClient(script, { "*": "allow" })
  const { data: session } = await client.session.create({ title: "First" })
  const sessionID = session?.id ?? ""
  await client.session.prompt({ sessionID, parts: [{ type: "text", text: "make a file" }] })
  await client.session.update({ sessionID, title: "Renamed" })
  expect((await client.session.get({ sessionID })).data).toMatchObject({ title: "Renamed" })
  const { data: fork } = await client.session.fork({ sessionID })
  expect(fork?.id).not.toBe(sessionID)
  const { data: listed } = await client.session.list()
  expect(listed?.map(({ id }) => id).sort()).toEqual([sessionID, fork?.id].sort())
  expect((await client.experimental.session.list({ search: "RENAMED (fo" })).data).toMatchObject([
    { id: fork?.id },
  ])
  const { data: withText } = await client.session.list({ search: "is don" })
  expect(withText?.map(({ id }) => id).sort()).toEqual([sessionID, fork?.id].sort())
  expect((await client.session.list({ search: "nothing like it" })).data).toEqual([])
  await client.session.delete({ sessionID })
  await expect(client.session.get({ sessionID })).rejects.toThrow()
})

test("OpenCode's client answers and dismisses questions, and aborts a run", async () => {
  const asking: Script = ({ body: { messages } }) =>
    messages.at(-1)?.role === "user"
      ? { calls: [{ name: "question", arguments: { questions: [{ question: "Which color?" }] } }] }
      : { text: "As you like." }
  const { client } = await openClient(asking, { "*": "allow" })
  const { data: session } = await client.session.create({})
  const sessionID = session?.id ?? ""
  const stream = await follow(client)
  const ask = async () => {
    await client.session.promptAsync({ sessionID, parts: [{ type: "text", text: "paint it" }] })
    await expect.poll(async () => (await client.question.list()).data, { timeout: 20_000 }).toHaveLength(1)
    return (await client.question.list()).data?.[0]?.id ?? ""
  }
  await client.question.reply({ requestID: await ask(), answers: [["green"]] })
  await stream.sees("question.replied")
  await expect.poll(() => textsIn(stream.events), { timeout: 20_000 }).toEqual(["As you like."])
  await client.question.reject({ requestID: await ask() })
  await stream.sees("question.rejected")
  await expect.poll(async () => (await client.session.status()).data, { timeout: 20_000 }).toEqual({})
  await ask()
  await client.session.abort({ sessionID })
  expect((await client.session.status()).data).toEqual({})
  await stream.leave()
})

test("the routes for OpenCode's client need a token with the scope of their work", async () => {
  const { server } = await openClient(script, {})
  const client = createOpencodeClient({
    baseUrl: `${server.url}/opencode`,
    headers: { authorization: `Bearer ${tokens.read}` },
  })
  const { response } = await client.session.create({})
  expect(response?.status).toBe(403)
  expect((await fetch(`${server.url}/opencode/session`)).status).toBe(401)
})

test("a malformed directory of OpenCode's client is refused", async () => {
  const { get, problems } = await setUp(script)
  for (const directory of ["%", "%E0%A4%A", "%zz/..", "relative", "%00"])
    for (const path of ["/event", "/session", "/permission"])
      expect(
        await get(`/opencode${path}`, { headers: { "x-opencode-directory": directory } }),
        `${directory} for ${path}`,
      ).toMatchObject({ status: 400, body: { error: { code: "directory.invalid" } } })
  expect(problems).toEqual([])
})

test("the turn of a reverted message is undone, and no earlier turn", async () => {
  const talk: Script = ({ body: { messages } }) =>
    messages.at(-1)?.content === "only talk"
      ? { text: "Talk." }
      : (script as Extract<Script, (...given: never) => unknown>)({ body: { messages } } as never, 0)
  const { client, project } = await openClient(talk, { "*": "allow" })
  const { data: session } = await client.session.create({})
  const sessionID = session?.id ?? ""
  for (const text of ["make a file", "only talk"])
    await client.session.prompt({ sessionID, parts: [{ type: "text", text }] })
  const { data: messages = [] } = await client.session.messages({ sessionID })
  const users = messages.filter(({ info }) => info.role === "user").map(({ info }) => info.id)
  await client.session.revert({ sessionID, messageID: users[1] ?? "" })
  expect(await project.read("made.txt")).toBe("made")
  await expect(client.session.revert({ sessionID, messageID: "msg_unknown" })).rejects.toThrow()
  expect(await project.read("made.txt")).toBe("made")
  await client.session.revert({ sessionID, messageID: users[0] ?? "" })
  await expect(project.read("made.txt")).rejects.toThrow()
})

test("a prompt of OpenCode's client that waits for a permission ends when the client leaves", async () => {
  const { request, server, session, directory, problems } = await setUp(script, {
    engine: { permission: { edit: "ask" } },
  })
  const path = await session()
  const leave = new AbortController()
  const prompt = fetch(`${server.url}/opencode${path}/message`, {
    method: "POST",
    headers: { authorization: `Bearer ${tokens.run}`, "content-type": "application/json" },
    body: JSON.stringify({ parts: [{ type: "text", text: "make a file" }] }),
    signal: leave.signal,
  })
  await expect.poll(async () => (await request("GET", path)).body.status).toBe("waiting")
  leave.abort()
  await expect(prompt).rejects.toThrow()
  const { body } = await request("GET", `/opencode/permission?directory=${encodeURIComponent(directory)}`)
  expect(body).toHaveLength(1)
  expect(problems).toEqual([])
})

test("OpenCode's client reads the project, its files and the data of its sessions", async () => {
  const answers: Script = ({ body: { messages } }) =>
    messages.at(-1)?.role !== "user"
      ? { text: "Done." }
      : {
          calls: [
            { name: "write", arguments: { filePath: "made.txt", content: "one\ntwo\n" } },
            {
              name: "todowrite",
              arguments: { todos: [{ content: "rest", status: "pending", priority: "low" }] },
            },
            { name: "task", arguments: { description: "look", prompt: "Look.", subagent_type: "explore" } },
          ],
        }
  const { client, project, server } = await openClient(answers, { "*": "allow" })
  const lines = Array.from({ length: 2_500 }, (_, line) => `line ${line}`).join("\n")
  await project.write("long.txt", lines)
  const { data: session } = await client.session.create({})
  const sessionID = session?.id ?? ""
  await client.session.prompt({ sessionID, parts: [{ type: "text", text: "make a file" }] })

  const { data: agents = [] } = await client.app.agents()
  expect(agents.map(({ name }) => name)).toEqual(expect.arrayContaining(["build", "plan", "explore"]))
  expect((await client.config.get()).data?.agent).toHaveProperty("build.mode", "primary")
  const { data: known } = await client.config.providers()
  expect(known?.providers.map(({ id }) => id)).toContain("test")
  expect(JSON.stringify(known)).not.toContain("apiKey")
  const { data: current } = await client.project.current()
  const { data: path } = await client.path.get()
  expect(path).toMatchObject({ worktree: current?.worktree, directory: session?.directory })
  expect((await client.command.list()).data).toEqual(expect.any(Array))
  expect((await client.mcp.status()).data).toEqual({})
  expect((await client.session.todo({ sessionID })).data).toMatchObject([
    { content: "rest", status: "pending" },
  ])
  expect((await client.session.diff({ sessionID })).data).toMatchObject([
    { file: "made.txt", status: "added", additions: 2, deletions: 0, patch: expect.stringContaining("+one") },
  ])
  expect((await client.session.children({ sessionID })).data).toMatchObject([{ parentID: sessionID }])
  expect((await client.find.files({ query: "mde" })).data).toEqual(["made.txt"])
  expect((await client.file.read({ path: "long.txt" })).data).toEqual({ type: "text", content: lines })
  await expect(client.file.read({ path: "missing.txt" })).rejects.toThrow()

  const reader = createOpencodeClient({
    baseUrl: `${server.url}/opencode`,
    headers: { authorization: `Bearer ${tokens.read}` },
  })
  expect((await reader.mcp.status()).response?.status).toBe(403)
})

test("OpenCode's client reads no file that a rule denies", async () => {
  const { client, project } = await openClient(script, { read: "deny" })
  await project.write("secret.txt", "hidden")
  await expect(client.file.read({ path: "secret.txt" })).rejects.toThrow()
  expect((await client.find.files({ query: "secret" })).data).toEqual([])
})
