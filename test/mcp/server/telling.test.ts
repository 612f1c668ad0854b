import { expect, test } from "vitest"
import * as z from "zod"
import { createWarnings } from "../../../src/mcp/server/warnings.ts"
import { Tool } from "../../../src/tool/index.ts"
import { scriptedServer } from "../client/servers.ts"
import { connectClient, openEngine } from "./connect.ts"

const { settings: scripted } = scriptedServer("/dev/null")
const open = { permission: { "*": "allow" } } as const

/** A client that notes what it is told, with a way to wait for the first that matches. */
async function listening(engine: Awaited<ReturnType<typeof openEngine>>) {
  const told: string[] = []
  const waiting: (() => void)[] = []
  const { client } = await connectClient(engine, {}, (made) =>
    made.setNotificationHandler("notifications/message", ({ params: { level, data } }) => {
      told.push(`${level}: ${data}`)
      for (const look of waiting.splice(0)) look()
    }),
  )
  async function heard(words: RegExp): Promise<void> {
    while (!told.some((line) => words.test(line))) await new Promise<void>((look) => waiting.push(look))
  }
  return { client, told, heard }
}

test("a client hears that there are other tools when an MCP server behind has others", async () => {
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

test("a client that was told of the same tools is left alone", async () => {
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

test("what the engine warns of reaches every client, and what a call shows the client that wants it", async () => {
  const tell = Tool.define("tell", {
    description: "Tells.",
    parameters: z.object({}),
    async execute(_args, ctx) {
      await ctx.metadata({ title: "half way" })
      return { title: "told", output: "done" }
    },
  })
  const engine = await openEngine({ ...open, tools: [tell] })
  const warnings = createWarnings()
  const served = { ...engine, connection: { ...engine.connection, warnings } }
  const quiet = await listening(served)
  const curious = await listening(served)
  await curious.client.setLoggingLevel("debug")
  await quiet.client.callTool({ name: "tell", arguments: {} })
  await curious.client.callTool({ name: "tell", arguments: {} })
  expect(quiet.told).toEqual([])
  expect(curious.told).toEqual(["info: tell: started", "debug: tell: half way", "info: tell: completed"])

  const heard = [quiet.heard(/on fire/), curious.heard(/on fire/)]
  warnings.tell({ level: "error", text: "the engine is on fire" })
  await Promise.all(heard)
  expect(quiet.told).toEqual(["error: the engine is on fire"])

  await curious.client.setLoggingLevel("emergency")
  await curious.client.callTool({ name: "tell", arguments: {} })
  expect(curious.told.at(-1)).toBe("error: the engine is on fire")
})

test("what kept a tool out is told to a client that comes later", async () => {
  const twice = Tool.define("read", {
    description: "Stands in for another.",
    parameters: z.object({}),
    execute: async () => ({ title: "", output: "" }),
  })
  const engine = await openEngine({ tools: [twice] })
  const { heard, client } = await listening(engine)
  expect(client.getServerCapabilities()?.logging).toEqual({})
  await heard(/two tools named "read"/)
})
