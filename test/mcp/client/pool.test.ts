import { readFileSync } from "node:fs"
import { chmod } from "node:fs/promises"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest"
import type { McpServer } from "../../../src/mcp/client/config.ts"
import { openTokenStore } from "../../../src/mcp/client/oauth/token-store.ts"
import { createMcpPool, type McpPool } from "../../../src/mcp/client/pool.ts"
import { fakeContext } from "../../../src/testing/context.ts"
import { type TemporaryProject, temporaryProject } from "../../../src/testing/project.ts"
import type { ToolResult } from "../../../src/tool/tool.ts"
import { AbortedError } from "../../../src/util/abort.ts"
import { errorMessage } from "../../../src/util/errors.ts"
import { markedEnvironment } from "../../lsp/processes.ts"
import { oddServer, realServer, scriptedServer } from "./servers.ts"

let project: TemporaryProject
let log: string
const open: { pool: McpPool; running(): number[] }[] = []

beforeEach(async () => {
  project = await temporaryProject({ "a.txt": "apples\n", "servers.log": "" })
  log = project.path("servers.log")
})
afterEach(async () => {
  await closeAll()
  await project.remove()
})

async function closeAll(): Promise<void> {
  for (const { pool, running } of open.splice(0)) {
    await pool.close()
    expect(running()).toEqual([])
  }
}

function openPool(...servers: McpServer[]) {
  return openPoolIn({ trusted: false }, ...servers)
}

function openPoolIn({ trusted }: { trusted: boolean }, ...servers: McpServer[]) {
  return createPool({ trusted, delayMs: 1 }, ...servers)
}

function createPool(
  { trusted = false, delayMs }: { trusted?: boolean; delayMs: number },
  ...servers: McpServer[]
) {
  const { environment, running } = markedEnvironment()
  const problems: string[] = []
  const pool = createMcpPool({
    servers,
    worktree: project.directory,
    trusted,
    environment,
    record: () => () => {},
    fingerprints: { check: async () => {} },
    tokens: openTokenStore(project.path("mcp-auth.json")),
    onChanged: async () => {},
    onProblem: (error) => problems.push(errorMessage(error)),
    restarts: { delayMs },
  })
  open.push({ pool, running })

  async function call(id: string, args: unknown = {}, abort?: AbortSignal): Promise<ToolResult> {
    const found = (await pool.tools()).find(({ tool }) => tool.id === id)
    if (!found) throw new Error(`there is no ${id}`)
    const definition = await found.tool.init()
    await using ctx = fakeContext({ directory: project.directory, ...(abort ? { abort } : {}) })
    return await definition.execute(args, ctx)
  }
  const ids = async () => (await pool.tools()).map(({ tool }) => tool.id)
  return { pool, problems, running, call, ids }
}

const lines = () => readFileSync(log, "utf8").trim().split("\n").filter(Boolean)

/** Waits for the log of the scripted server. */
async function noted(line: RegExp): Promise<string> {
  for (;;) {
    const found = lines().find((written) => line.test(written))
    if (found !== undefined) return found
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

describe("real servers", () => {
  test("lists tools in the order of the config with the server's schema", async () => {
    const { pool, problems, ids } = openPool(
      realServer("everything"),
      realServer("filesystem", project.directory),
    )
    const all = await ids()
    expect(all).toContain("everything_get-sum")
    expect(all).toContain("filesystem_read_text_file")
    expect(all.findIndex((id) => id.startsWith("filesystem"))).toBeGreaterThan(
      all.findLastIndex((id) => id.startsWith("everything")),
    )
    const sum = (await pool.tools()).find(({ tool }) => tool.id === "everything_get-sum")
    expect((await sum?.tool.init())?.jsonSchema).toMatchObject({
      type: "object",
      properties: { a: { type: "number", description: "First number" } },
      required: ["a", "b"],
    })
    expect(problems).toEqual([])
  })

  test("reads a file", async () => {
    const { call } = openPool(realServer("filesystem", project.directory))
    expect(await call("filesystem_read_text_file", { path: project.path("a.txt") })).toMatchObject({
      title: "filesystem: Read Text File",
      output: "apples\n",
    })
  })

  test("keeps the server's state between calls", async () => {
    const memory = realServer("memory")
    const environment = { MEMORY_FILE_PATH: project.path("memory.jsonl") }
    const { call } = openPool({ ...memory, settings: { ...memory.settings, environment } })
    const entity = { name: "Ada", entityType: "person", observations: ["likes engines"] }
    await call("memory_create_entities", { entities: [entity] })
    const { metadata } = await call("memory_search_nodes", { query: "engines" })
    expect(metadata?.structured).toMatchObject({ entities: [entity] })
  })

  test("fails the call with the error that the tool reports", async () => {
    const { call } = openPool(realServer("filesystem", project.directory))
    await expect(call("filesystem_read_text_file", { path: "/etc/passwd" })).rejects.toThrow(/Access denied/)
  })

  test("lets the server reject invalid arguments", async () => {
    const { call } = openPool(realServer("everything"))
    await expect(call("everything_get-sum", { a: "one" })).rejects.toThrow(/expected number/)
  })

  test("runs a tool that its server offers only as a task, and cancels the task", async () => {
    const { call } = openPool(realServer("everything"))
    const result = await call("everything_simulate-research-query", { topic: "otters" })
    expect(result.output).toContain("otters")
    const stop = new AbortController()
    const stopped = call("everything_simulate-research-query", { topic: "eels" }, stop.signal)
    setTimeout(() => stop.abort(), 500)
    await expect(stopped).rejects.toThrow(/aborted/)
  })

  test("converts images, resources, links and structured content", async () => {
    const { call } = openPool(realServer("everything"))
    const image = await call("everything_get-tiny-image")
    expect(image.attachments).toMatchObject([
      { mime: "image/png", url: expect.stringMatching(/^data:image\/png;base64,iVBOR/) },
    ])
    const resource = await call("everything_get-resource-reference", { resourceType: "Text", resourceId: 1 })
    expect(resource.output).toContain("demo://resource/dynamic/text/1\nResource 1: This is a plaintext")
    const blob = await call("everything_get-resource-reference", { resourceType: "Blob", resourceId: 1 })
    expect(blob.attachments).toMatchObject([
      { mime: "text/plain", filename: "demo://resource/dynamic/blob/1" },
    ])
    const links = await call("everything_get-resource-links", { count: 1 })
    expect(links.output).toMatch(/demo:\/\/resource\/dynamic\/\w+\/1/)
    const weather = await call("everything_get-structured-content", { location: "Chicago" })
    expect(weather.metadata?.structured).toMatchObject({ temperature: expect.any(Number) })
  })
})

describe("a local server", () => {
  test("gets the environment it is given and its own variables", async () => {
    const { call } = openPool(scriptedServer(log, { environment: { GREETING: "hello" } }))
    const environment: unknown = JSON.parse((await call("scripted_env")).output)
    expect(environment).toMatchObject({ GREETING: "hello", LANGUAGE_SERVER_TEST: expect.any(String) })
  })

  test("ends with the pool, including its child processes", async () => {
    const { pool, ids, running } = openPool(scriptedServer(log))
    await ids()
    expect(running()).toHaveLength(2)
    await pool.close()
    expect(running()).toEqual([])
  })

  test("is not started before it is needed", () => {
    const { running } = openPool(scriptedServer(log))
    expect(running()).toEqual([])
  })

  test("gets tool ids that providers accept", async () => {
    const { call } = openPool(scriptedServer(log))
    expect((await call("scripted_odd_n_me")).output).toBe("you called odd.näme")
  })

  test("that cannot start is reported once and does not affect the others", async () => {
    const missing: McpServer = { id: "gone", settings: { type: "local", command: ["./no-such-program"] } }
    const { ids, pool, problems } = openPool(missing, scriptedServer(log))
    expect(await ids()).toContain("scripted_env")
    await ids()
    expect(problems).toEqual([
      expect.stringMatching(
        /^The MCP server gone is unavailable: the program \.\/no-such-program was not found in/,
      ),
    ])
    expect(await pool.status()).toMatchObject([
      { id: "gone", status: "failed", problem: expect.stringContaining("no-such-program") },
      { id: "scripted", status: "connected" },
    ])
  })

  test("inside the project starts only if the project is trusted", async () => {
    await project.write("bin/own", `#!/bin/sh\nexec ${process.execPath} "$@"\n`)
    await chmod(project.path("bin/own"), 0o755)
    const args = [join(import.meta.dirname, "scripted-server.ts"), log]
    const own: McpServer = { id: "own", settings: { type: "local", command: ["./bin/own", ...args] } }
    const untrusted = openPoolIn({ trusted: false }, own)
    expect(await untrusted.ids()).toEqual([])
    expect(untrusted.problems).toEqual([expect.stringMatching(/Programs in an untrusted project do not run/)])
    expect(lines()).toEqual([])
    expect(await openPoolIn({ trusted: true }, own).ids()).toContain("own_env")
  })

  test("that does not connect in time is stopped, and the error shows its stderr", async () => {
    // Long enough to write to stderr, also on a busy machine.
    const { ids, problems } = openPool({
      id: "mute",
      settings: {
        type: "local",
        command: ["sh", "-c", "printf 'need a key' >&2; exec sleep 60"],
        timeout: 1000,
      },
    })
    expect(await ids()).toEqual([])
    expect(problems).toEqual([
      expect.stringMatching(
        /^The MCP server mute is unavailable: .*timed out\. The end of its stderr:\nneed a key/i,
      ),
    ])
  })
})

describe("a server that deviates from the protocol", () => {
  const answers = {
    initialize: { protocolVersion: "2025-06-18", capabilities: {}, serverInfo: { name: "d", version: "1" } },
    "tools/list": {
      tools: [
        {
          name: "odd",
          description: null,
          inputSchema: null,
          outputSchema: { type: "object", required: ["a"] },
        },
      ],
      nextCursor: null,
    },
  }
  test.each<[string, unknown, string]>([
    ["only text, in spite of an output schema", { content: [{ type: "text", text: "hi" }] }, "hi"],
    [
      "one odd item",
      {
        content: [
          { type: "text", text: "hi" },
          { type: "chart", x: 1 },
        ],
      },
      'hi\n\n{\n  "type": "chart",\n  "x": 1\n}',
    ],
    ["an item without a type", { content: [{ text: "hi" }], isError: null }, "hi"],
    ["a text instead of a list", { content: "hi" }, "hi"],
    ["a number instead of a list", { content: 5 }, "5"],
    ["no content", { structuredContent: { b: 1 } }, '{\n  "b": 1\n}'],
    ["null", { content: null, structuredContent: null }, "The tool returned no output."],
  ])("keeps its tools and a result with %s", async (_, result, output) => {
    const script = `
      const answers = ${JSON.stringify({ ...answers, "tools/call": result })}
      require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
        const { id, method } = JSON.parse(line)
        console.log(JSON.stringify({ level: "info", msg: "got " + method }))
        console.log(JSON.stringify({ level: "error", error: "not a reply" }))
        if (method in answers) console.log("\\uFEFF" + JSON.stringify({ jsonrpc: "2.0", id, result: answers[method] }))
      })`
    const server = {
      id: "odd",
      settings: { type: "local" as const, command: [process.execPath, "-e", script] },
    }
    const { call } = openPool(server)
    expect(await call("odd_odd")).toMatchObject({ output })
  })
})

test("reports each state as soon as it is known, and a slow server as failed", async () => {
  const silent = (id: string, timeout?: number): McpServer => {
    const command = [process.execPath, "-e", "setInterval(() => {}, 1000)"]
    return { id, settings: { type: "local", command, ...(timeout === undefined ? {} : { timeout }) } }
  }
  const { pool } = openPool(silent("silent"), silent("impatient", 50), scriptedServer(log))
  const reported: string[] = []
  const onStatus = ({ id }: { id: string }) => void reported.push(id)
  const all = await pool.status({ limitMs: 3000, onStatus })
  expect(all).toMatchObject([
    { id: "silent", status: "failed", problem: expect.stringContaining("did not answer within 3 s") },
    // The timeout of the config applies.
    { id: "impatient", status: "failed", problem: expect.not.stringContaining("within 3 s") },
    { id: "scripted", status: "connected" },
  ])
  expect(reported.sort()).toEqual(["impatient", "scripted", "silent"])
})

test("starts at most 32 local servers", async () => {
  const gone = (id: string): McpServer => ({ id, settings: { type: "local", command: ["./gone"] } })
  const many = Array.from({ length: 32 }, (_, index) => gone(`s${index}`))
  const { pool, running } = openPool(...many, scriptedServer(log))
  const status = await pool.status()
  expect(status.at(-1)?.problem).toMatch(/limit of 32 local servers/)
  expect(status.at(-2)?.problem).toMatch(/was not found/)
  expect(running()).toEqual([])
})

test("retries a failing start after half a second, and doubles the delay each time", async () => {
  vi.useFakeTimers()
  try {
    const { pool, problems } = createPool(
      { delayMs: 500 },
      { id: "gone", settings: { type: "local", command: ["./gone"] } },
    )
    for (const wait of [0, 500, 1000, 2000]) {
      let done = false
      const asked = pool.tools().then(() => {
        done = true
      })
      await vi.advanceTimersByTimeAsync(Math.max(0, wait - 1))
      expect(done).toBe(wait === 0)
      await vi.advanceTimersByTimeAsync(1)
      await asked
    }
    await pool.tools()
    expect(problems.at(-1)).toMatch(/was started 4 times within 10 minutes/)
    const reported = problems.length
    await pool.tools()
    expect(problems).toHaveLength(reported)
  } finally {
    vi.useRealTimers()
  }
})

describe("calls", () => {
  test("end at an abort, which cancels them at the server", async () => {
    const { call } = openPool(scriptedServer(log))
    const controller = new AbortController()
    const waiting = call("scripted_wait", {}, controller.signal)
    await noted(/waiting/)
    controller.abort(new AbortedError("enough"))
    await expect(waiting).rejects.toThrow("enough")
    expect(await noted(/^cancelled/)).toContain("enough")
  })

  test("fail if the server ends, and the next call restarts it", async () => {
    const { call } = openPool(scriptedServer(log))
    await expect(call("scripted_crash")).rejects.toThrow(
      /^Lost the connection to the MCP server scripted while trying to run crash: it exited with code 3. The end of its stderr:\nout of cheese\.\nIt is unknown whether the call took effect/,
    )
    expect((await call("scripted_odd_n_me")).output).toContain("you called")
    expect(lines().filter((line) => line === "started")).toHaveLength(2)
  })

  test("stop restarting a server that keeps ending", async () => {
    const { call, pool } = openPool(scriptedServer(log))
    for (let count = 0; count < 4; count += 1) await call("scripted_crash").catch(() => {})
    await expect(call("scripted_crash")).rejects.toThrow(/was started 4 times within 10 minutes/)
    expect(lines().filter((line) => line === "started")).toHaveLength(4)
    expect(await pool.status()).toMatchObject([{ status: "failed" }])
  })

  test("list the tools again after the server reports a change", async () => {
    const { call, pool } = openPool(scriptedServer(log))
    const described = async () => (await pool.status())[0]?.tools.at(-1)?.description
    expect(await described()).toBe("Has a name that no provider accepts.")
    await call("scripted_change")
    expect(await described()).toBe("Sends all files away.")
  })
})

describe("a server that does not follow the protocol", () => {
  test.each([
    ["null", /could not run null: .*"result" must be an object, got null.*an error in the server/],
    [
      "text-error",
      /could not run text-error: .*"error" must be an object with a number "code".*got "it broke"/,
    ],
    ["empty", /could not run empty: .*"result" must be an object, got nothing/],
    ["no-json", /could not run no-json: .*not valid JSON/],
    ["large", /could not run large: .*its size is 100\.0 MiB, and the limit is 10\.0 MiB/],
  ])("fails the call whose reply is malformed (%s), and answers the next", async (name, message) => {
    const { call } = openPool(oddServer())
    const waiting = call("odd_silent")
    await expect(call(`odd_${name}`)).rejects.toThrow(message)
    expect(await call("odd_fine")).toMatchObject({ output: "fine" })
    await Promise.all([expect(waiting).rejects.toThrow(/Lost the connection/), closeAll()])
  })

  test("fails the only running call if a reply has no id", async () => {
    const { call } = openPool(oddServer())
    await expect(call("odd_no-id")).rejects.toThrow(/could not run no-id: .*cannot parse this/)
  })

  test("fails all calls at once when it closes its output, and connects again", async () => {
    const { call } = openPool(oddServer())
    const waiting = call("odd_silent")
    await Promise.all([
      expect(waiting).rejects.toThrow(/Lost the connection .* it closed its output/),
      expect(call("odd_eof")).rejects.toThrow(/Lost the connection .* it closed its output/),
    ])
    expect(await call("odd_fine")).toMatchObject({ output: "fine" })
  })

  test("ends a call that only reports progress after the time limit of a call", async () => {
    const { call } = openPool(oddServer({ callTimeout: 300 }))
    await expect(call("odd_chatter")).rejects.toThrow(/did not finish chatter within 0\.3 s\. /)
    expect(await call("odd_fine")).toMatchObject({ output: "fine" })
  })

  test("reports tools that cannot be used, and offers the others", async () => {
    const { ids, problems } = openPool(oddServer())
    expect(await ids()).toContain("odd_fine")
    expect(await ids()).not.toContain("odd_odd")
    expect(problems).toEqual([
      expect.stringMatching(
        /^The MCP server odd works, but its tool odd is unavailable, .*inputSchema\.type/,
      ),
      expect.stringMatching(/one of its tools is unavailable/),
      expect.stringMatching(/one of its tools is unavailable/),
    ])
  })
})
