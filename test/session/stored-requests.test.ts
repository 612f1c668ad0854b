import { expect, test } from "vitest"
import { createMemoryStore } from "../../src/store/memory.ts"
import { createSecretMask } from "../../src/tool/secrets.ts"
import { startEngine } from "./engine.ts"
import { tool } from "./run.ts"

const secret = "hidden-value-0123456789"
const act = tool("act", () => ({ title: "", output: "acted" }))

test("does not store secrets of requests, questions and answers", async () => {
  const store = createMemoryStore()
  const question = { name: "question", arguments: { questions: [{ question: `Is it ${secret}?` }] } }
  await using engine = await startEngine(
    [{ calls: [{ name: "act", arguments: { key: secret } }, question] }, { text: "Done." }],
    {
      ...{ store, tools: [act], permission: { "*": "allow", act: "ask" } },
      ...{ approvals: true, questions: true, mask: createSecretMask([{ name: "KEY", value: secret }]) },
    },
  )
  const { tackle } = engine
  const session = await tackle.sessions.create()
  await session.send("go")
  await expect.poll(() => store.requests()).toHaveLength(2)
  const stored = await store.requests()
  expect(JSON.stringify(stored)).not.toContain(secret)
  expect(JSON.stringify(stored)).toContain("[secret KEY]")
  for (const { asked } of stored)
    if (asked.type === "permission") await tackle.reply(asked.id, { reply: "reject", message: secret })
    else expect(await tackle.questions.reply(asked.id, [[secret]])).toBe("applied")
  await session.wait()
  for (const { asked } of stored) {
    const { answer } = (await store.request(asked.id)) ?? {}
    expect(JSON.stringify(answer)).toContain("[secret KEY]")
    expect(JSON.stringify(answer)).not.toContain(secret)
  }
})

test("stores only requests that wait, and none of a call that is allowed or answered at once", async () => {
  const store = createMemoryStore()
  const opened: string[] = []
  await using engine = await startEngine([{ calls: [{ name: "act", arguments: {} }] }, { text: "Done." }], {
    store: {
      ...store,
      openRequest(request, lease) {
        opened.push(request.asked.id)
        return store.openRequest(request, lease)
      },
    },
    ...{ tools: [act], permission: { "*": "allow", act: "ask" } },
  })
  engine.tackle.on("permission.asked", (request) => void request.reply("once"))
  const session = await engine.tackle.sessions.create()
  await session.send("go")
  expect(await session.wait()).toMatchObject({ status: "completed", refused: [] })
  expect(opened).toEqual([])
})

test("applies an answer of another process that arrives before the request is known to be stored", async () => {
  const store = createMemoryStore()
  await using engine = await startEngine([{ calls: [{ name: "act", arguments: {} }] }, { text: "Done." }], {
    store: {
      ...store,
      async openRequest(request, lease) {
        await store.openRequest(request, lease)
        await store.answerRequest(request.asked.id, {
          ...{ type: "permission", id: "ans_1", reply: { reply: "once" }, source: "user" },
        })
        await new Promise((resolve) => setTimeout(resolve, 50))
      },
    },
    ...{ tools: [act], permission: { "*": "allow", act: "ask" }, approvals: true },
  })
  const session = await engine.tackle.sessions.create()
  await session.send("go")
  expect(await session.wait()).toMatchObject({ status: "completed", refused: [] })
})
