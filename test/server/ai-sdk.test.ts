import {
  AbstractChat,
  type ChatState,
  DefaultChatTransport,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  type UIMessage,
} from "ai"
import { expect, test } from "vitest"
import type { Script } from "../../src/testing/model-server.ts"
import { setUp, tokens } from "./start-server.ts"

/** The chat of `useChat`, without React. */
class Chat extends AbstractChat<UIMessage> {}

function openChat(url: string, session: string): Chat {
  const state: ChatState<UIMessage> = {
    status: "ready",
    error: undefined,
    messages: [],
    pushMessage(message) {
      state.messages = [...state.messages, message]
    },
    popMessage() {
      state.messages = state.messages.slice(0, -1)
    },
    replaceMessage(index, message) {
      state.messages = state.messages.with(index, message)
    },
    snapshot: (value) => structuredClone(value),
  }
  return new Chat({
    id: session,
    state,
    transport: new DefaultChatTransport({
      api: `${url}/session/${session}/chat`,
      headers: { authorization: `Bearer ${tokens.run}` },
    }),
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  })
}

/** Waits until the chat is idle, and returns its last message. */
async function settled(chat: Chat): Promise<UIMessage | undefined> {
  await expect.poll(() => chat.status, { timeout: 20_000 }).toMatch(/ready|error/)
  if (chat.error) throw chat.error
  return chat.lastMessage
}

const script: Script = ({ body: { messages } }) =>
  messages.at(-1)?.role === "user"
    ? {
        reasoning: "I need the date.",
        text: "One moment.",
        calls: [{ name: "bash", arguments: { command: "touch made", description: "Make a file" } }],
        pieceSize: 3,
        pieceDelayMs: 5,
      }
    : { text: "It is done.", pieceSize: 4, pieceDelayMs: 5 }

function shapes(message: UIMessage | undefined): string[] {
  return (message?.parts ?? []).map((part) => {
    if (part.type === "text" || part.type === "reasoning") return `${part.type}: ${part.text}`
    return "state" in part
      ? `${part.type} ${"toolName" in part ? part.toolName : ""} ${part.state}`
      : part.type
  })
}

test("a chat of the AI SDK finishes a task with an approved permission", async () => {
  const { server, request, directory } = await setUp(script, { engine: { permission: { bash: "ask" } } })
  const { body: session } = await request("POST", "/session", { body: { directory } })
  const chat = openChat(server.url, session.id)
  await chat.sendMessage({ text: "make a file" })
  const asked = await settled(chat)
  expect(shapes(asked)).toEqual([
    "step-start",
    "reasoning: I need the date.",
    "text: One moment.",
    "dynamic-tool bash approval-requested",
  ])
  const approval = asked?.parts.flatMap((part) => ("approval" in part ? (part.approval ?? []) : []))[0]
  await chat.addToolApprovalResponse({ id: approval?.id ?? "", approved: true })
  await expect.poll(() => shapes(chat.lastMessage).at(-1), { timeout: 20_000 }).toBe("text: It is done.")
  const done = await settled(chat)
  expect(shapes(done)).toEqual([
    "step-start",
    "reasoning: I need the date.",
    "text: One moment.",
    "dynamic-tool bash output-available",
    "step-start",
    "text: It is done.",
  ])
  expect(chat.messages).toHaveLength(2)
})

test("an answer that ended early is reported in the message's metadata", async () => {
  const { server, request, directory } = await setUp([{ text: "Half", finish: "content_filter" }])
  const { body: session } = await request("POST", "/session", { body: { directory } })
  const chat = openChat(server.url, session.id)
  await chat.sendMessage({ text: "go" })
  expect(shapes(await settled(chat)).at(-1)).toBe("text: Half")
  expect(chat.lastMessage?.metadata).toMatchObject({
    tackle: { notice: expect.stringContaining("content filter") },
  })
})

test("a refused permission becomes a denied call, and the model continues", async () => {
  const { server, request, directory } = await setUp(script, { engine: { permission: { bash: "ask" } } })
  const { body: session } = await request("POST", "/session", { body: { directory } })
  const chat = openChat(server.url, session.id)
  await chat.sendMessage({ text: "make a file" })
  const asked = await settled(chat)
  const approval = asked?.parts.flatMap((part) => ("approval" in part ? (part.approval ?? []) : []))[0]
  await chat.addToolApprovalResponse({ id: approval?.id ?? "", approved: false, reason: "not now" })
  await expect.poll(() => shapes(chat.lastMessage).at(-1), { timeout: 20_000 }).toBe("text: It is done.")
  expect(shapes(await settled(chat))).toContain("dynamic-tool bash output-denied")
})

test("a chat without permission questions streams the whole answer, turn after turn", async () => {
  const { server, request, directory } = await setUp(script, { engine: { permission: { "*": "allow" } } })
  const { body: session } = await request("POST", "/session", { body: { directory } })
  const chat = openChat(server.url, session.id)
  for (const text of ["make a file", "once more"]) {
    await chat.sendMessage({ text })
    expect(shapes(await settled(chat)).at(-1)).toBe("text: It is done.")
  }
  expect(chat.messages.map(({ role }) => role)).toEqual(["user", "assistant", "user", "assistant"])
  const { body } = await request("GET", `/session/${session.id}/message`)
  expect(JSON.stringify(body)).toContain("once more")
})

test("a chat that is opened again during a run shows the whole answer", async () => {
  const { server, request, directory } = await setUp(script, { engine: { permission: { bash: "ask" } } })
  const { body: session } = await request("POST", "/session", { body: { directory } })
  const first = openChat(server.url, session.id)
  await first.sendMessage({ text: "make a file" })
  await settled(first)
  const second = openChat(server.url, session.id)
  second.messages = [...first.messages.slice(0, 1)]
  await second.resumeStream()
  expect(shapes(await settled(second))).toEqual(shapes(first.lastMessage))
  const approval = second.lastMessage?.parts.flatMap((part) =>
    "approval" in part ? (part.approval ?? []) : [],
  )[0]
  await second.addToolApprovalResponse({ id: approval?.id ?? "", approved: true })
  await expect.poll(() => shapes(second.lastMessage).at(-1), { timeout: 20_000 }).toBe("text: It is done.")
  await settled(second)
  const idle = openChat(server.url, session.id)
  await idle.resumeStream()
  expect(idle.messages).toEqual([])
})

test("two calls that ask at the same time are both answered", async () => {
  const both: Script = ({ body: { messages } }) =>
    messages.at(-1)?.role === "user"
      ? {
          calls: ["one", "two"].map((name) => ({
            name: "bash",
            arguments: { command: `touch ${name}`, description: name },
          })),
        }
      : { text: "Both are done." }
  const { server, request, directory } = await setUp(both, { engine: { permission: { bash: "ask" } } })
  const { body: session } = await request("POST", "/session", { body: { directory } })
  const chat = openChat(server.url, session.id)
  await chat.sendMessage({ text: "make two files" })
  for (let answered = 0; answered < 2; answered += 1) {
    if (shapes(await settled(chat)).at(-1) === "text: Both are done.") break
    for (const part of chat.lastMessage?.parts ?? [])
      if ("approval" in part && part.state === "approval-requested")
        await chat.addToolApprovalResponse({ id: part.approval.id, approved: true })
    await expect.poll(() => shapes(chat.lastMessage).join(), { timeout: 20_000 }).not.toContain("responded")
  }
  await expect.poll(() => shapes(chat.lastMessage).at(-1), { timeout: 20_000 }).toBe("text: Both are done.")
  expect(shapes(await settled(chat)).filter((shape) => shape.endsWith("output-available"))).toHaveLength(2)
})

test("a text that is sent again is not run again", async () => {
  const { model, request, directory } = await setUp(script, { engine: { permission: { "*": "allow" } } })
  const { body: session } = await request("POST", "/session", { body: { directory } })
  const message = { id: "one", role: "user", parts: [{ type: "text", text: "make a file" }] }
  const body = { messages: [message] }
  await request("POST", `/session/${session.id}/chat`, { body })
  const count = model.requests.length
  const again = await request("POST", `/session/${session.id}/chat`, { body })
  expect(again.body).toContain('{"type":"finish","finishReason":"stop"}')
  expect(model.requests).toHaveLength(count)
})

test("a provider's error reaches the chat", async () => {
  const { server, request, directory } = await setUp(() => ({ status: 401, text: "no key" }))
  const { body: session } = await request("POST", "/session", { body: { directory } })
  const chat = openChat(server.url, session.id)
  await chat.sendMessage({ text: "hello" })
  await expect(settled(chat)).rejects.toThrow(/no key/)
})

test("refuses a body without a usable last message", async () => {
  const { request, directory } = await setUp(script)
  const { body: session } = await request("POST", "/session", { body: { directory } })
  const send = (messages: unknown) => request("POST", `/session/${session.id}/chat`, { body: { messages } })
  expect((await send([])).status).toBe(400)
  expect((await send([{ id: "a", role: "assistant", parts: [] }])).status).toBe(400)
  expect((await request("POST", "/session/ses_0/chat", { body: { messages: [] } })).status).toBe(400)
})
