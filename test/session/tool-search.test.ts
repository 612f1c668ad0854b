import { expect, test } from "vitest"
import type { TackleOptions } from "../../src/engine/options.ts"
import { createMemoryStore } from "../../src/store/memory.ts"
import {
  type ChatMessage,
  type ModelServer,
  type RecordedRequest,
  startModelServer,
} from "../../src/testing/model-server.ts"
import type { Reply } from "../../src/testing/reply.ts"
import { startEngine } from "./engine.ts"
import { resultsOf, run, tool, toolParts } from "./run.ts"

const services = ["issue", "branch", "release", "page", "invoice", "ticket", "build", "alert"]
const verbs = ["list", "get", "create", "update", "delete"]

/** 200 tools of a size that is typical for MCP servers. */
const many = ["alpha", "beta", "gamma", "delta", "omega"].flatMap((server) =>
  services.flatMap((thing) =>
    verbs.map((verb) =>
      tool(`${server}_${verb}_${thing}`, () => ({ title: "", output: `${server} ${verb} ${thing}` }), {
        description: `Does ${verb} for one ${thing} of ${server}. ${"It says what it takes and gives. ".repeat(12)}`,
      }),
    ),
  ),
)

const options: Partial<TackleOptions> = { tools: many, permission: { "*": "allow" }, sandbox: "off" }
const search = (query: string, more = {}): Reply => ({
  calls: [{ name: "tool_search", arguments: { query, ...more } }],
})
const call = (name: string): Reply => ({ calls: [{ name, arguments: {} }] })
const done: Reply = { text: "Done." }

const sent = (server: ModelServer) =>
  server.requests.map(({ body }) => body.tools?.map((entry) => entry.function.name) ?? [])
const added = (server: ModelServer) => {
  const all = sent(server)
  return all.map((names) => names.slice(all[0]?.length))
}
const textOf = (message: ChatMessage | undefined) => JSON.stringify(message?.content ?? "")

test("defers 200 tools by default and shrinks the first request by their definitions", async ({
  annotate,
}) => {
  await using whole = await startEngine([done], { ...options, toolSearch: false })
  await using less = await startEngine([done], options)
  await run(whole)
  await run(less)
  const [full, short] = [whole, less].map(({ server }) => server.requests[0]?.bytes ?? 0)
  await annotate(`first request with 200 tools: ${full} bytes, with tool_search ${short}`)
  expect(sent(whole.server)[0]).toEqual(expect.arrayContaining(many.map(({ id }) => id)))
  expect(sent(whole.server)[0]).not.toContain("tool_search")
  expect(sent(less.server)[0]).toContain("tool_search")
  expect(sent(less.server)[0]?.filter((name) => many.some(({ id }) => id === name))).toEqual([])
  expect(full).toBeGreaterThan(100_000)
  expect(short).toBeLessThan(20_000)
})

test("offers few tools at once, without search", async () => {
  await using engine = await startEngine([search("issue"), done], { ...options, tools: many.slice(0, 40) })
  const { session } = await run(engine)
  expect(sent(engine.server)[0]).toContain("alpha_list_issue")
  expect(sent(engine.server)[0]).not.toContain("tool_search")
  expect((await resultsOf(session))[0]).toMatch(/this tool does not exist/)
  const listed = await engine.tackle.tools()
  expect(listed.find(({ id }) => id === "tool_search")?.reason).toMatch(/tool_search\.maxBytes/)
})

test("appends found tools in the order found, across steps, prompts and engines", async () => {
  const replies = [
    search("create invoice gamma", { limit: 1 }),
    search("select:omega_get_alert,alpha_list_page,nothing"),
    call("gamma_create_invoice"),
    done,
    search("select:alpha_list_page,alpha_get_page"),
    done,
    done,
  ]
  await using engine = await startEngine(replies, options)
  const { session } = await run(engine)
  await run(engine, { session })

  const found = ["gamma_create_invoice", "omega_get_alert", "alpha_list_page"]
  expect(added(engine.server)).toEqual([
    [],
    found.slice(0, 1),
    found,
    found,
    found,
    [...found, "alpha_get_page"],
  ])
  const [first = []] = sent(engine.server)
  for (const names of sent(engine.server)) expect(names.slice(0, first.length)).toEqual(first)
  const results = await resultsOf(session)
  expect(results[1]).toMatch(/Not found: "nothing"[\s\S]*- omega_get_alert: Does get[\s\S]*- alpha_list_page/)
  expect(results[2]).toBe("gamma create invoice")
})

test("keeps found tools in a continued session", async () => {
  const store = createMemoryStore()
  await using before = await startEngine([search("select:beta_get_page"), done], { ...options, store })
  const { session } = await run(before)
  await before.tackle.close()
  await using after = await startEngine([done], { ...options, store })
  const same = await after.tackle.sessions.get(session.id)
  await run(after, { ...(same ? { session: same } : {}) })
  expect(sent(after.server)[0]?.at(-1)).toBe("beta_get_page")
})

test("runs a deferred tool that is called by its exact name, and offers it from then on", async () => {
  const replies = [
    call("beta_get_build"),
    call("beta_get_buil"),
    { calls: [{ name: "batch", arguments: { calls: [{ tool: "delta_get_page", parameters: {} }] } }] },
    done,
  ]
  await using engine = await startEngine(replies, { ...options, experimental: { batch_tool: true } })
  const { session } = await run(engine)
  const results = (await toolParts(session)).map(({ tool, state }) => [tool, state.status])
  expect(results).toEqual([
    ["beta_get_build", "completed"],
    ["beta_get_buil", "completed"],
    ["batch", "completed"],
    ["delta_get_page", "completed"],
  ])
  expect(added(engine.server).at(-1)).toEqual(["beta_get_build", "delta_get_page"])
})

test("keeps found tools after a summary", async () => {
  const summary = ({ body }: RecordedRequest) => textOf(body.messages[0]).startsWith('"Summarize the work')
  const replies = [search("select:omega_get_alert"), call("beta_get_page"), done]
  await using engine = await startEngine(
    (request) => (summary(request) ? { text: "SUMMARY" } : (replies.shift() ?? done)),
    options,
  )
  const { session } = await run(engine)
  await run(engine, { session, text: "continue ".repeat(2_000) })
  await session.compact()
  await run(engine, { session })
  await run(engine, { session })
  const { messages = [] } = engine.server.requests.at(-1)?.body ?? {}
  expect(messages.some((message) => textOf(message).includes("SUMMARY"))).toBe(true)
  expect(messages.some(({ role }) => role === "tool")).toBe(false)
  expect(added(engine.server).at(-1)).toEqual(["omega_get_alert", "beta_get_page"])
})

test("tells a model without tool calling about found tools", async () => {
  const machine = await startModelServer({
    script: [
      {
        text: '<tool_call>{"name": "tool_search", "arguments": {"query": "select:omega_get_alert"}}</tool_call>',
      },
      { text: '<tool_call>{"name": "omega_get_alert", "arguments": {}}</tool_call>' },
      done,
    ],
  })
  const models = { m: { toolCalling: "synthetic" as const } }
  const providers = { test: { options: { baseURL: machine.url, apiKey: "k" }, models } }
  await using engine = await startEngine([], { ...options, providers })
  const { session } = await run(engine)
  await machine.close()
  expect((await resultsOf(session))[1]).toBe("omega get alert")
  const told = machine.requests.map(({ body }) => textOf(body.messages[0]))
  const place = (text = "", name: string) => text.indexOf(`{\\"name\\":\\"${name}\\"`)
  expect(place(told[0], "omega_get_alert")).toBe(-1)
  expect(place(told[1], "omega_get_alert")).toBeGreaterThan(place(told[1], "tool_search"))
  expect(told[0]).not.toContain("alpha_update_ticket")
})

test("offers everything to an agent that cannot search", async () => {
  const permission = { "*": "allow", tool_search: "deny" } as const
  await using engine = await startEngine([done], { ...options, permission })
  await run(engine)
  expect(sent(engine.server)[0]).toContain("omega_delete_alert")
})

test("neither finds nor runs a denied tool", async () => {
  const permission = { "*": "allow", omega_get_alert: "deny" } as const
  await using engine = await startEngine([search("select:omega_get_alert"), call("omega_get_alert"), done], {
    ...options,
    permission,
  })
  const { session } = await run(engine)
  const results = await resultsOf(session)
  expect(results[0]).toMatch(/Not found: "omega_get_alert"/)
  expect(results[1]).toMatch(/^Error: The omega_get_alert tool is unavailable/)
  expect(added(engine.server).at(-1)).toEqual([])
})
