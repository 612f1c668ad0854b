import { globSync, readdirSync, readFileSync } from "node:fs"
import { createServer, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { dirname, join } from "node:path"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import type { PermissionConfig } from "../../src/permission/rules.ts"
import type { ToolState } from "../../src/schema/tool-state.ts"
import { type TemporaryProject, temporaryProject } from "../../src/testing/project.ts"
import { validateArguments } from "../../src/tool/validate.ts"
import { builtinTools } from "../../src/tools/index.ts"
import { type JsonSchema, toJsonSchema } from "../../src/util/json-schema.ts"
import { scriptedServer } from "../lsp/servers.ts"
import { startEngine } from "../session/engine.ts"
import { run, tool, toolParts } from "../session/run.ts"

/** A successful call of every built-in tool, with as much output as the tool can produce. */
const samples: Record<string, Record<string, unknown>> = {
  read: { filePath: "big.txt" },
  glob: { pattern: "**/*" },
  grep: { pattern: "line" },
  list: { path: "." },
  edit: { filePath: "small.txt", oldString: "old", newString: "new" },
  write: { filePath: "made.txt", content: "x\n" },
  apply_patch: { patchText: "*** Begin Patch\n*** Add File: made.txt\n+x\n*** End Patch" },
  bash: { command: "cat big.txt && touch made.txt", description: "Show and make" },
  job: { action: "list" },
  task: { description: "Look", prompt: "Look around", subagent_type: "general" },
  skill: { name: "long" },
  lsp: { operation: "documentSymbol", filePath: "big.ts" },
  webfetch: { url: "<server>/page", format: "text" },
  websearch: { query: "everything" },
  codesearch: { query: "everything" },
  todowrite: { todos: [{ content: "x".repeat(100_000), status: "pending", priority: "high" }] },
  todoread: {},
  question: { questions: [{ question: "Which?" }] },
  plan_enter: {},
  plan_exit: {},
  batch: { calls: [{ tool: "read", parameters: { filePath: "big.txt" } }] },
  tool_search: { query: "further", limit: 20 },
  invalid: { tool: "x", error: "y" },
}

/** Calls of the tools that take the path of a file. */
const pathSamples: Record<string, (path: string) => Record<string, unknown>> = {
  read: (path) => ({ filePath: path }),
  glob: (path) => ({ pattern: "*", path: dirname(path) }),
  grep: (path) => ({ pattern: "old", path }),
  list: (path) => ({ path: dirname(path) }),
  edit: (path) => ({ filePath: `${path}.new`, oldString: "", newString: "new" }),
  write: (path) => ({ filePath: `${path}.new`, content: "x" }),
  apply_patch: (path) => ({ patchText: `*** Begin Patch\n*** Add File: ${path}.new\n+x\n*** End Patch` }),
  bash: (path) => ({ command: "true", workdir: dirname(path) }),
  lsp: (path) => ({ operation: "diagnostics", filePath: path }),
}
const unicodeName = "größe 文件 👍 'q' $x;y/ñ.txt"

/** Tools whose sample shows files of the project. Creating large files for the others takes long and proves nothing. */
const showsFiles = ["read", "glob", "grep", "list", "bash", "lsp", "batch"]

/** Tools that ask the user themselves or need no permission. */
const withoutPermission = ["job", "question", "plan_enter", "plan_exit", "batch", "tool_search", "invalid"]

const tools = await Promise.all(
  builtinTools({
    bash: { environment: () => ({}) },
    task: { subagents: () => [] },
    skills: { offered: () => [], find: () => undefined },
    features: { client: "cli", experimental: new Set(), search: true },
    search: { name: "none", search: () => Promise.reject(new Error("nothing is searched here")) },
  }).map(async ({ tool }) => ({ id: tool.id, definition: await tool.init() })),
)
const ids = tools.map(({ id }) => id)

/** A page and a search result that exceed every limit. */
let server: Server
let address = ""
/** A skill of the user, not of the project. */
let skills: TemporaryProject

beforeAll(async () => {
  skills = await temporaryProject({
    "long/SKILL.md": `---\ndescription: Long\n---\n${"word after word\n".repeat(20_000)}`,
  })
  const results = Array.from({ length: 50 }, (_, index) => ({
    url: `https://example.com/${index}`,
    title: "x".repeat(5_000),
    content: "word ".repeat(20_000),
  }))
  server = createServer(({ url }, response) => {
    const isSearch = url?.startsWith("/search") === true
    response.setHeader("content-type", isSearch ? "application/json" : "text/plain")
    response.end(isSearch ? JSON.stringify({ results }) : "line of a page\n".repeat(100_000))
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})

afterAll(async () => {
  await new Promise((resolve) => server.close(resolve))
  await skills.remove()
})

const source = join(import.meta.dirname, "../../src/tools")

test("every built-in tool has a sample here", () => {
  expect(Object.keys(samples).sort()).toEqual([...ids].sort())
})

describe.each(tools)("$id", ({ id, definition }) => {
  const sample = samples[id] ?? {}
  const schema = toJsonSchema(definition.parameters)

  test("has the description of its Markdown file", () => {
    const [file = ""] = globSync(`${source}/**/${id.replaceAll("_", "-")}.md`)
    const text = readFileSync(file, "utf8").trim()
    expect(text).not.toBe("")
    expect(definition.description.startsWith(text)).toBe(true)
    expect(definition.access).toBeDefined()
    // When to use it, when not, or what to use instead.
    if (id !== "invalid") expect(text).toMatch(/\b(?:use|not|nothing|never)\b/i)
  })

  test("has an object of plain keywords as its schema, with a description of every parameter", () => {
    expect(schema).toMatchObject({ type: "object", properties: expect.any(Object) })
    expect(problemsOf(schema, id, true)).toEqual([])
  })

  test.skipIf(Object.keys(sample).length === 0)("reports wrong types", async () => {
    const wrong = Object.fromEntries(Object.keys(sample).map((key) => [key, { wrong: [null] }]))
    for (const input of [wrong, {}, null, [], 7].filter(
      (each) => !definition.parameters.safeParse(each).success,
    )) {
      await expect(validateArguments({ id, definition }, input)).rejects.toMatchObject({
        code: "tool.invalid-arguments",
        message: expect.stringMatching(
          new RegExp(`^The ${id} tool was called with invalid arguments: .+\\nPlease rewrite`, "s"),
        ),
      })
    }
  })

  test("ignores unknown keys", async () => {
    const known = await validateArguments({ id, definition }, sample)
    expect(await validateArguments({ id, definition }, { ...sample, surprise: [1] })).toEqual(known)
  })

  test("does nothing after an abort", async () => {
    const { state, changed } = await callAlone(id, AbortSignal.abort())
    expect(state).toMatchObject({ status: "error", metadata: { kind: "aborted" } })
    expect(changed).toEqual([])
  })

  test.skipIf(withoutPermission.includes(id))(
    "ends as aborted and changes nothing if aborted during the call",
    async () => {
      const { state, changed } = await callInSession(id, onlySmall, "abort")
      expect(state).toMatchObject({ status: "error", metadata: { kind: "aborted" } })
      expect(changed).toEqual([])
    },
  )

  test.skipIf(!(id in pathSamples))(
    "asks for a path outside the project, and changes nothing there if refused",
    async () => {
      await using cleanup = new AsyncDisposableStack()
      const outside = await temporaryProject({ "file.txt": "old\n" })
      cleanup.defer(() => outside.remove())
      const before = snapshot(outside.directory)
      const { state, asked } = await callInSession(
        id,
        { "*": "allow", external_directory: "ask" },
        "reject",
        {
          input: pathSamples[id]?.(outside.path("file.txt")) ?? {},
        },
      )
      expect(asked).toEqual(["external_directory"])
      expect(state).toMatchObject({ status: "error", metadata: { kind: "refused" } })
      expect(snapshot(outside.directory)).toEqual(before)
    },
  )

  test.skipIf(!(id in pathSamples))("accepts names in any script, with spaces and symbols", async () => {
    const { state } = await callInSession(id, { "*": "allow" }, "once", {
      input: pathSamples[id]?.(unicodeName) ?? {},
    })
    expect(state).toMatchObject({ status: "completed" })
    const { output } = state.status === "completed" ? state : { output: "" }
    // bash shows the content of the file, not its name.
    if (!["bash"].includes(id)) expect(output.normalize()).toContain(unicodeName.split("/")[0])
  })

  test.skipIf(!(id in pathSamples))("leaves one complete file after five parallel calls", async () => {
    await using engine = await start(id, { "*": "allow" })
    const before = snapshot(engine.project.directory)
    const input = JSON.stringify(pathSamples[id]?.("small.txt"))
    const calls = Array.from({ length: 5 }, () => engine.tackle.callTool({ tool: id, input }))
    const states = (await Promise.all(calls)).map(({ state }) => state)
    const done = states.filter(({ status }) => status === "completed")
    // The first call creates the file; the others fail because it exists, or write the same content.
    expect(done.length).toBeGreaterThan(0)
    const isMaker = ["edit", "write", "apply_patch"].includes(id)
    if (!isMaker) expect(done).toHaveLength(5)
    const after = snapshot(engine.project.directory)
    const made = engine.project.path("small.txt.new")
    expect(changes(before, after)).toEqual(isMaker ? [made] : [])
    if (isMaker) expect(after.get(made)).toMatch(/^(?:new|x)\n?$/)
  })

  test("changes nothing if refused", async () => {
    const { state, changed, asked } = await callInSession(id, onlySmall, "reject")
    expect(changed).toEqual([])
    if (withoutPermission.includes(id)) return
    expect(asked).toHaveLength(1)
    expect(state).toMatchObject({ status: "error", metadata: { kind: "refused" } })
  })

  test("keeps the output limits", async () => {
    const rules: PermissionConfig = { "*": "allow", private_network: { "127.0.0.1": "allow", "*": "allow" } }
    const { state } = await callInSession(id, rules, "once", { size: "large" })
    const text = state.status === "completed" ? state.output : state.status === "error" ? state.error : ""
    expect(text).not.toBe("")
    // The limits of a truncated output, with room for the notice.
    expect(Buffer.byteLength(text)).toBeLessThan(51_200 + 2_048)
    expect(text.split("\n").length).toBeLessThan(2_000 + 20)
  })
})

/** Asks for everything except the file that the session reads first. */
const onlySmall: PermissionConfig = { "*": "ask", read: { "*": "ask", "small.txt": "allow" } }
const mode = { plan_mode: true, batch_tool: true, lsp_tool: true }

/** Enables everything. The model reads a file, then makes the call. `size`: large outputs exceed every limit. */
function start(
  id: string,
  permission: PermissionConfig,
  { input: given, size = "small" }: { input?: Record<string, unknown>; size?: "small" | "large" } = {},
) {
  const input = given ?? JSON.parse(JSON.stringify(samples[id]).replaceAll("<server>", address))
  const steps = [
    { name: "read", arguments: { filePath: "small.txt" } },
    { name: id, arguments: input },
  ]
  return startEngine(
    (_, index) => {
      const step = steps[index]
      return step ? { calls: [step] } : { text: "Done." }
    },
    {
      permission,
      sandbox: "off",
      experimental: mode,
      questions: true,
      environment: { PATH: process.env.PATH, SEARXNG_URL: address },
      skillFiles: [skills.path("long/SKILL.md")],
      files: projectFiles(showsFiles.includes(id) ? size : "small"),
      tools: furtherTools(id === "tool_search" ? size : "small"),
      toolSearch: { maxBytes: 0 },
      lsp: scriptedServer("tsserver"),
    },
  )
}

function furtherTools(size: "small" | "large") {
  const [count, words] = size === "large" ? [30, 20_000] : [2, 1]
  return Array.from({ length: count }, (_, index) =>
    tool(`further_${index}`, () => ({ title: "", output: "" }), { description: "text ".repeat(words) }),
  )
}

function projectFiles(size: "small" | "large"): Record<string, string> {
  const [lines, names, files] = size === "large" ? [100_000, 3_000, 400] : [3, 3, 3]
  return {
    "small.txt": "old\n",
    "big.txt": "one line of many\n".repeat(lines),
    [unicodeName]: "old\n",
    "big.ts": Array.from({ length: names }, (_, index) => `export const name${index} = ${index}`).join("\n"),
    ...Object.fromEntries(
      Array.from({ length: files }, (_, index) => [
        `${"d".repeat(150)}/${index}${"n".repeat(150)}`,
        "line\n",
      ]),
    ),
  }
}

/**
 * Makes one call in a session. Every permission request gets the same reply or aborts the run; questions are dismissed.
 */
async function callInSession(
  id: string,
  permission: PermissionConfig,
  reply: "once" | "reject" | "abort",
  options: { input?: Record<string, unknown>; size?: "small" | "large" } = {},
) {
  await using engine = await start(id, permission, options)
  const { tackle, project } = engine
  const asked: string[] = []
  tackle.on("permission.asked", (request) => {
    asked.push(request.permission)
    if (reply === "abort") void session.abort()
    else request.reply(reply)
  })
  tackle.on("question.asked", (request) => void request.reject())
  const before = snapshot(project.directory)
  // plan_exit is offered only in plan mode, and apply_patch only to one family of models.
  const agent = id === "plan_exit" ? "plan" : "build"
  const session = await tackle.sessions.create({
    agent,
    ...(id === "apply_patch" ? { model: "test/gpt-5" } : {}),
  })
  await run(engine, { session })
  const part = (await toolParts(session)).find(({ tool }, index) => tool === id && index > 0)
  if (!part) throw new Error(`the model did not call ${id}`)
  return { state: part.state, asked, changed: changes(before, snapshot(project.directory)) }
}

/** Makes one standalone call with everything allowed. */
async function callAlone(id: string, signal: AbortSignal): Promise<{ state: ToolState; changed: string[] }> {
  await using engine = await start(id, { "*": "allow" })
  const before = snapshot(engine.project.directory)
  const input = JSON.stringify(samples[id])
  const { state } = await engine.tackle.callTool({ tool: id, input, signal })
  return { state, changed: changes(before, snapshot(engine.project.directory)) }
}

/** Returns every file of the project with its text. The engine's data is elsewhere. */
function snapshot(directory: string): Map<string, string> {
  const files = readdirSync(directory, { recursive: true, withFileTypes: true }).filter((entry) =>
    entry.isFile(),
  )
  const paths = files.map((entry) => join(entry.parentPath, entry.name))
  return new Map(
    paths.filter((path) => !path.includes("/.data/")).map((path) => [path, readFileSync(path, "utf8")]),
  )
}

function changes(before: ReadonlyMap<string, string>, after: ReadonlyMap<string, string>): string[] {
  const paths = new Set([...before.keys(), ...after.keys()])
  return [...paths].filter((path) => before.get(path) !== after.get(path))
}

/** Keywords that every provider accepts, with the same meaning since draft 7 of JSON Schema. */
const keywords = new Set(
  (
    "type properties required additionalProperties items enum const description default " +
    "minimum maximum exclusiveMinimum exclusiveMaximum minLength maxLength pattern minItems maxItems propertyNames"
  ).split(" "),
)

/** Returns the problems of a schema by path. `inside`: the description may be that of the tool or of the list. */
function problemsOf(schema: JsonSchema, place: string, inside: boolean): string[] {
  const unknown = Object.keys(schema).filter((key) => !keywords.has(key))
  const { type, description, properties = {}, required = [], items, additionalProperties } = schema
  const fields = Object.entries(properties as Record<string, JsonSchema>)
  return [
    ...unknown.map((key) => `${place}: ${key}`),
    ...(typeof type === "string" || "enum" in schema || "const" in schema ? [] : [`${place}: no type`]),
    ...(inside || (typeof description === "string" && description !== "")
      ? []
      : [`${place}: no description`]),
    ...(required as string[])
      .filter((key) => !fields.some(([name]) => name === key))
      .map((key) => `${place}: requires ${key}, which is none of its own`),
    ...fields.flatMap(([name, field]) => problemsOf(field, `${place}.${name}`, false)),
    ...(isSchema(items) ? problemsOf(items, `${place}[]`, true) : []),
    ...(isSchema(additionalProperties) && Object.keys(additionalProperties).length > 0
      ? problemsOf(additionalProperties, `${place}.*`, true)
      : []),
  ]
}

function isSchema(value: unknown): value is JsonSchema {
  return typeof value === "object" && value !== null
}
