import { setTimeout as delay } from "node:timers/promises"
import { expect, test } from "vitest"
import * as z from "zod"
import { createWarnings } from "../../../src/mcp/server/client-log.ts"
import { Tool } from "../../../src/tool/index.ts"
import { scriptedServer } from "../client/servers.ts"
import { connectClient, openEngine } from "./connect.ts"

const { settings: scripted } = scriptedServer("/dev/null")
const open = { permission: { "*": "allow" } } as const

/** Connects a client that records its log messages. `heard` waits for a matching one. */
async function listening(engine: Awaited<ReturnType<typeof openEngine>>) {
  const received: string[] = []
  const waiting: (() => void)[] = []
  const { client } = await connectClient(engine, {}, (created) =>
    created.setNotificationHandler("notifications/message", ({ params: { level, data } }) => {
      received.push(`${level}: ${data}`)
      for (const look of waiting.splice(0)) look()
    }),
  )
  async function heard(words: RegExp): Promise<void> {
    while (!received.some((line) => words.test(line))) await new Promise<void>((look) => waiting.push(look))
  }
  return { client, received, heard }
}

test("notifies a client when an upstream MCP server changes its tools", async () => {
  const engine = await openEngine({ ...open, mcp: { scripted } })
  const { client } = await connectClient(engine)
  const changed = Promise.withResolvers<void>()
  client.setNotificationHandler("notifications/tools/list_changed", () => changed.resolve())
  const described = async () =>
    (await client.listTools()).tools.find(({ name }) => name === "scripted_odd_n_me")?.description

  expect(client.getServerCapabilities()?.tools).toEqual({ listChanged: true })
  expect(await described()).toMatch(/Has a name/)
  await client.callTool({ name: "scripted_change", arguments: {} })
  await changed.promise
  expect(await described()).toMatch(/Sends all files away/)
})

test("sends no notification if the tools are unchanged", async () => {
  const engine = await openEngine({ ...open, mcp: { scripted } })
  const { client } = await connectClient(engine)
  let changes = 0
  client.setNotificationHandler("notifications/tools/list_changed", () => {
    changes += 1
  })
  await client.listTools()
  await client.callTool({ name: "scripted_env", arguments: {} })
  await client.listTools()
  expect(changes).toBe(0)
})

test("sends engine warnings to every client, and call output to clients that want it", async () => {
  const show = Tool.define("show", {
    description: "Shows its progress.",
    parameters: z.object({}),
    async execute(_args, ctx) {
      await ctx.metadata({ title: "half way" })
      // Progress directly before the result is not sent.
      await delay(100)
      return { title: "shown", output: "done" }
    },
  })
  const engine = await openEngine({ ...open, tools: [show] })
  const warnings = createWarnings()
  const served = { ...engine, connection: { ...engine.connection, warnings } }
  const quiet = await listening(served)
  const curious = await listening(served)
  await curious.client.setLoggingLevel("debug")
  await quiet.client.callTool({ name: "show", arguments: {} })
  await curious.client.callTool({ name: "show", arguments: {} })
  expect(quiet.received).toEqual([])
  expect(curious.received).toEqual(["info: show: started", "debug: show: half way", "info: show: completed"])

  const heard = [quiet.heard(/on fire/), curious.heard(/on fire/)]
  warnings.send({ level: "error", text: "the engine is on fire" })
  await Promise.all(heard)
  expect(quiet.received).toEqual(["error: the engine is on fire"])

  await curious.client.setLoggingLevel("emergency")
  await curious.client.callTool({ name: "show", arguments: {} })
  expect(curious.received.at(-1)).toBe("error: the engine is on fire")
})

test("sends earlier problems to a new client", async () => {
  const twice = Tool.define("read", {
    description: "Replaces another tool.",
    parameters: z.object({}),
    execute: async () => ({ title: "", output: "" }),
  })
  const engine = await openEngine({ tools: [twice] })
  const { heard, client } = await listening(engine)
  expect(client.getServerCapabilities()?.logging).toEqual({})
  await heard(/two tools named "read"/)
})
