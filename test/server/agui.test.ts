import { HttpAgent } from "@ag-ui/client"
import { expect, test } from "vitest"
import type { Script } from "../../src/testing/model-server.ts"
import { setUp, tokens } from "./start-server.ts"

/** An interrupt of a run, as the client reports it. */
interface Interrupt {
  id: string
  reason: string
  toolCallId?: string
}

const script: Script = ({ body: { messages } }) =>
  messages.at(-1)?.role === "user"
    ? {
        reasoning: "I need a file.",
        text: "One moment.",
        calls: [{ name: "bash", arguments: { command: "touch made", description: "Make a file" } }],
        pieceSize: 3,
        pieceDelayMs: 5,
      }
    : { text: "It is done.", pieceSize: 4, pieceDelayMs: 5 }

async function openAgent(answers: Script, permission: Record<string, "ask" | "allow"> = { bash: "ask" }) {
  const { server, request, post, directory, project } = await setUp(answers, { engine: { permission } })
  const { body: session } = await request("POST", "/session", { body: { directory } })
  const agent = new HttpAgent({
    url: `${server.url}/session/${session.id}/agui`,
    threadId: session.id,
    headers: { authorization: `Bearer ${tokens.run}` },
  })
  const events: string[] = []
  let interrupts: Interrupt[] = []
  let failure: string | undefined
  const subscriber = {
    onEvent({ event }: { event: { type: string; outcome?: { interrupts?: Interrupt[] } } }) {
      events.push(event.type)
      if (event.type === "RUN_FINISHED") interrupts = event.outcome?.interrupts ?? []
    },
    onRunErrorEvent({ event }: { event: { message: string } }) {
      failure = event.message
    },
  }
  let count = 0
  return {
    agent,
    events,
    project,
    get interrupts() {
      return interrupts
    },
    get failure() {
      return failure
    },
    async say(text: string) {
      count += 1
      agent.addMessage({ id: `user-${count}`, role: "user", content: text })
      await agent.runAgent({}, subscriber as never)
    },
    interrupt: () => post(`/session/${session.id}/interrupt`),
    resume: (answersTo: { interruptId: string; status: "resolved" | "cancelled"; payload?: unknown }[]) =>
      agent.runAgent({ resume: answersTo }, subscriber as never),
    texts: () =>
      agent.messages.flatMap(({ role, content }) =>
        role === "assistant" && typeof content === "string" && content !== "" ? [content] : [],
      ),
    results: () => agent.messages.flatMap(({ role, content }) => (role === "tool" ? [String(content)] : [])),
  }
}

test("an AG-UI client finishes a task with an answered permission request", async () => {
  const chat = await openAgent(script)
  await chat.say("make a file")
  expect(chat.interrupts).toMatchObject([{ reason: "permission", toolCallId: expect.any(String) }])
  expect(chat.texts()).toEqual(["One moment."])
  expect(chat.results()).toEqual([])
  const [{ id } = { id: "" }] = chat.interrupts
  await chat.resume([{ interruptId: id, status: "resolved", payload: { approved: true } }])
  expect(chat.interrupts).toEqual([])
  expect(chat.texts()).toEqual(["One moment.", "It is done."])
  expect(chat.results()).toEqual([expect.stringContaining("exit code 0")])
  expect(await chat.project.read("made")).toBe("")
  expect(chat.events.filter((type) => type === "TOOL_CALL_START")).toHaveLength(1)
})

test("a cancelled interrupt refuses the permission", async () => {
  const chat = await openAgent(script)
  await chat.say("make a file")
  const [{ id } = { id: "" }] = chat.interrupts
  await chat.resume([{ interruptId: id, status: "cancelled" }])
  expect(chat.results()).toEqual([expect.stringMatching(/^Error: /)])
  expect(chat.texts().at(-1)).toBe("It is done.")
  await expect(chat.project.read("made")).rejects.toThrow()
})

test("a question ends the run with an interrupt that the client answers", async () => {
  const asking: Script = ({ body: { messages } }) =>
    messages.at(-1)?.role === "user"
      ? { calls: [{ name: "question", arguments: { questions: [{ question: "Which color?" }] } }] }
      : { text: "As you like." }
  const chat = await openAgent(asking)
  await chat.say("paint it")
  expect(chat.interrupts).toMatchObject([{ reason: "question" }])
  const [{ id } = { id: "" }] = chat.interrupts
  await chat.resume([{ interruptId: id, status: "resolved", payload: { answers: [["green"]] } }])
  expect(chat.results()).toEqual([expect.stringContaining("green")])
  expect(chat.texts()).toEqual(["As you like."])
})

test("several turns continue one session, with reasoning", async () => {
  const chat = await openAgent(script, { "*": "allow" })
  await chat.say("make a file")
  await chat.say("once more")
  expect(chat.texts()).toEqual(["One moment.", "It is done.", "One moment.", "It is done."])
  expect(chat.events).toContain("REASONING_MESSAGE_CONTENT")
})

test("text arrives before the answer is complete", async () => {
  const chat = await openAgent([{ text: "These words never end.", pieceSize: 4, fault: "hang-mid" }])
  const said = chat.say("hello")
  await expect.poll(() => chat.texts().join("")).toMatch(/^These words/)
  await chat.interrupt()
  await said
  expect(chat.texts()).toEqual([expect.not.stringContaining("end.")])
})

test("a provider's error ends the run with an error", async () => {
  const chat = await openAgent(() => ({ status: 401, text: "no key" }))
  await chat.say("hello").catch(() => {})
  expect(chat.failure).toContain("no key")
})

test("refuses a request without a text of the user or an answer", async () => {
  const { request, directory } = await setUp(script)
  const { body: session } = await request("POST", "/session", { body: { directory } })
  const send = (more: object) =>
    request("POST", `/session/${session.id}/agui`, {
      body: { threadId: "t", runId: "r", messages: [], ...more },
    })
  expect((await send({})).status).toBe(400)
  const wrong = [{ interruptId: "per_1", status: "resolved", payload: { approved: true } }]
  expect((await send({ resume: wrong })).status).toBe(400)
})
