import type { ElicitRequest, ElicitResult } from "@modelcontextprotocol/client"
import { expect, test } from "vitest"
import * as z from "zod"
import { Tool } from "../../../src/tool/index.ts"
import { connectClient, openEngine } from "./connect.ts"
import { slowTool } from "./slow-tool.ts"

const forms = { elicitation: { form: {} } }
const command = (text: string) => ({ name: "bash", arguments: { command: text, description: "Do it" } })
const asking = { permission: { bash: "ask", edit: "allow" } } as const

type Form = Extract<ElicitRequest["params"], { requestedSchema: unknown }>

/** Connects a client whose user answers each form in turn. */
async function withUser(
  engine: Awaited<ReturnType<typeof openEngine>>,
  answer: (form: Form) => ElicitResult | Promise<ElicitResult>,
) {
  const shown: Form[] = []
  const { client } = await connectClient(engine, forms)
  client.setRequestHandler("elicitation/create", async ({ params }) => {
    if (!("requestedSchema" in params)) throw new Error("no form")
    shown.push(params)
    return await answer(params)
  })
  return { client, shown }
}

test("shows a permission request as a form; once covers one call, always this client", async () => {
  const engine = await openEngine(asking)
  const answers = ["once", "always"]
  const { client, shown } = await withUser(engine, () => ({
    action: "accept",
    content: { answer: answers.shift() ?? "reject" },
  }))
  await client.callTool(command("make -n a"))
  expect(shown).toHaveLength(1)
  expect(shown[0]?.message).toContain("bash: make -n a")
  expect(shown[0]?.requestedSchema.properties.answer).toMatchObject({ enum: ["once", "always", "reject"] })
  await client.callTool(command("make -n b"))
  expect(shown).toHaveLength(2)
  await client.callTool(command("make -n b"))
  expect(shown).toHaveLength(2)

  const other = await withUser(engine, () => ({ action: "decline" }))
  await other.client.callTool(command("make -n b"))
  expect(other.shown).toHaveLength(1)
})

test.each([
  [
    "with a message for the model",
    { action: "accept", content: { answer: "reject", message: "use npm" } },
    /said: use npm/,
  ],
  ["a declined form", { action: "decline" }, /user refused/],
  ["a dismissed form", { action: "cancel" }, /the client did not return the user's answer/],
  [
    "an answer that was not offered",
    { action: "accept", content: { answer: "yes" } },
    /needs the user's approval/,
  ],
] satisfies [string, ElicitResult, RegExp][])("refuses the call: %s", async (_name, answer, text) => {
  const engine = await openEngine(asking)
  const { client } = await withUser(engine, () => answer)
  const result = await client.callTool(command("touch made"))
  expect(result.isError).toBe(true)
  expect(JSON.stringify(result.content)).toMatch(text)
  await expect(engine.project.read("made")).rejects.toThrow("ENOENT")
})

test("ends the command and withdraws the form of a cancelled call", async () => {
  const engine = await openEngine(asking)
  const { client: watching } = await connectClient(engine, {})
  await watching.listTools()
  const withdrawn = Promise.withResolvers<void>()
  const shownOnce = Promise.withResolvers<void>()
  const { client } = await connectClient(engine, forms)
  client.setRequestHandler("elicitation/create", async (_request, { mcpReq }) => {
    shownOnce.resolve()
    mcpReq.signal.addEventListener("abort", () => withdrawn.resolve())
    await withdrawn.promise
    return { action: "cancel" }
  })
  const stop = new AbortController()
  const call = client.callTool(command("make x"), { signal: stop.signal })
  await shownOnce.promise
  stop.abort(new Error("enough"))
  await expect(call).rejects.toThrow("enough")
  await withdrawn.promise
  expect(engine.tackle.pendingRequests()).toEqual([])
})

test("passes a cancellation to the tool", async () => {
  const { slow, started, ended } = slowTool()
  const engine = await openEngine({ tools: [slow], permission: { "*": "allow" } })
  const { client } = await connectClient(engine)
  const stop = new AbortController()
  const call = client.callTool({ name: "slow", arguments: {} }, { signal: stop.signal })
  await started.promise
  stop.abort(new Error("enough"))
  await expect(call).rejects.toThrow("enough")
  await ended.promise
})

test("sends live metadata as progress with an increasing number", async () => {
  const engine = await openEngine({ permission: { "*": "allow" } })
  const { client } = await connectClient(engine)
  const received: { progress: number; message?: string | undefined }[] = []
  await client.callTool(command("echo first; sleep 0.3; echo second; sleep 0.3"), {
    onprogress: (progress) => void received.push(progress),
  })
  expect(received.map(({ message }) => message)).toEqual(expect.arrayContaining(["first", "second"]))
  const numbers = received.map(({ progress }) => progress)
  expect(numbers).toEqual([...new Set(numbers)].sort((a, b) => a - b))
})

test("converts attached images, audio, bytes and text", async () => {
  const data = (mime: string, text: string) => ({
    type: "file" as const,
    mime,
    url: `data:${mime};base64,${Buffer.from(text).toString("base64")}`,
  })
  const show = Tool.define("show", {
    description: "Shows.",
    parameters: z.object({}),
    async execute() {
      const attachments = [
        data("image/png", "p"),
        data("audio/wav", "a"),
        data("application/pdf", "d"),
        { ...data("text/plain", "words"), filename: "note.txt" },
      ]
      return { title: "show", output: "four things", attachments }
    },
  })
  const engine = await openEngine({ tools: [show], permission: { "*": "allow" } })
  const { client } = await connectClient(engine)
  expect((await client.callTool({ name: "show", arguments: {} })).content).toEqual([
    { type: "text", text: "four things" },
    { type: "image", data: "cA==", mimeType: "image/png" },
    { type: "audio", data: "YQ==", mimeType: "audio/wav" },
    {
      type: "resource",
      resource: { uri: "attachment:///attachment-3", mimeType: "application/pdf", blob: "ZA==" },
    },
    { type: "resource", resource: { uri: "attachment:///note.txt", mimeType: "text/plain", text: "words" } },
  ])
})

test("offers the question tool to a client with forms, and returns its answers", async () => {
  const engine = await openEngine()
  const plain = await connectClient(engine)
  expect((await plain.client.listTools()).tools.map(({ name }) => name)).not.toContain("question")

  const { client, shown } = await withUser(engine, () => ({
    action: "accept",
    content: { choice0: "Blue", text1: "as soon as it is whole" },
  }))
  expect((await client.listTools()).tools.map(({ name }) => name)).toContain("question")
  const { content } = await client.callTool({
    name: "question",
    arguments: {
      questions: [
        { question: "Which colour?", header: "Colour", options: [{ label: "Red" }, { label: "Blue" }] },
        { question: "When?" },
      ],
    },
  })
  expect(shown[0]?.requestedSchema.properties.choice0).toMatchObject({ enum: ["Red", "Blue"] })
  expect(JSON.stringify(content)).toMatch(/Blue.*as soon as it is whole/s)
})

test("keeps read files and to-dos per client, across calls", async () => {
  const engine = await openEngine({ permission: { "*": "allow" } }, { "a.txt": "one\n" })
  const [first, second] = [await connectClient(engine), await connectClient(engine)]
  const edit = {
    name: "edit",
    arguments: { filePath: "a.txt", oldString: "one", newString: "two" },
  }
  await first.client.callTool({ name: "read", arguments: { filePath: "a.txt" } })
  expect((await second.client.callTool(edit)).isError).toBe(true)
  expect((await first.client.callTool(edit)).isError).toBeFalsy()

  const todos = [{ id: "1", content: "ship", status: "pending", priority: "high" }]
  await first.client.callTool({ name: "todowrite", arguments: { todos } })
  const read = (client: typeof first.client) => client.callTool({ name: "todoread", arguments: {} })
  expect(JSON.stringify((await read(first.client)).content)).toContain("ship")
  expect(JSON.stringify((await read(second.client)).content)).not.toContain("ship")
})

test("returns invalid arguments and a missing file as error results", async () => {
  const engine = await openEngine()
  const { client } = await connectClient(engine)
  const malformed = await client.callTool({ name: "read", arguments: { filePath: 7 } })
  expect(malformed.isError).toBe(true)
  expect(JSON.stringify(malformed.content)).toContain("filePath")
  const missing = await client.callTool({ name: "read", arguments: { filePath: "none.txt" } })
  expect(missing.isError).toBe(true)
  expect(JSON.stringify(missing.content)).toContain("none.txt")
})
