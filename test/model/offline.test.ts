import { describe, expect, test } from "vitest"
import { toPrompt } from "../../src/model/history-to-prompt.ts"
import { createOfflineModel, offlineInfo } from "../../src/model/offline.ts"
import { parseRequests } from "../../src/model/offline-requests.ts"
import { type StepEvent, streamStep } from "../../src/model/stream.ts"
import type { MessageWithParts } from "../../src/schema/message.ts"
import type { ToolState } from "../../src/schema/tool-state.ts"
import { assistant, call, completed, failed, user } from "./history.ts"

describe("offline requests", () => {
  test.each([
    ["list the files", { kind: "list", path: "." }],
    ["List the files in the current directory", { kind: "list", path: "." }],
    ["list files in src/tool", { kind: "list", path: "src/tool" }],
    ["please list all files in `my dir`.", { kind: "list", path: "my dir" }],
    ["ls src", { kind: "list", path: "src" }],
    ["list the files in .", { kind: "list", path: "." }],
    ["What files are in src?", { kind: "list", path: "src" }],
    ["find files named *.ts", { kind: "glob", pattern: "*.ts", path: "." }],
    ["find all *.test.ts files in test", { kind: "glob", pattern: "*.test.ts", path: "test" }],
    ["find files ending in .md", { kind: "glob", pattern: "**/*.md", path: "." }],
    ["read README.md", { kind: "read", path: "README.md" }],
    ["Read README.md.", { kind: "read", path: "README.md" }],
    ["Read the package.json file", { kind: "read", path: "package.json" }],
    ["show me the contents of src/a.ts", { kind: "read", path: "src/a.ts" }],
    ["could you please read 'a b.txt'?", { kind: "read", path: "a b.txt" }],
    ["find TODO in src", { kind: "search", text: "TODO", path: "src" }],
    ["search for the text 'a, b' in lib", { kind: "search", text: "a, b", path: "lib" }],
    ["grep foo", { kind: "search", text: "foo", path: "." }],
    ["replace foo with bar in a.txt", { kind: "replace", from: "foo", to: "bar", path: "a.txt" }],
    [
      'replace "let x = 1, y" with "const z" in the file src/a.ts',
      { kind: "replace", from: "let x = 1, y", to: "const z", path: "src/a.ts" },
    ],
    ["run npm test", { kind: "run", command: "npm test" }],
    ["run the command `ls -la; cat a, then b`", { kind: "run", command: "ls -la; cat a, then b" }],
    ["run make && ls", { kind: "run", command: "make && ls" }],
    ["Check if git is installed", { kind: "run", command: "git --version" }],
    ["create notes.txt with hello world", { kind: "write", path: "notes.txt", content: "hello world\n" }],
    ["write a new file called a.md with 'x'", { kind: "write", path: "a.md", content: "x\n" }],
    ["write hello to a.txt", { kind: "write", path: "a.txt", content: "hello\n" }],
    ["create an empty file x.txt", { kind: "write", path: "x.txt", content: "" }],
    [
      "create a.ts with ```ts\nconst a = 1\nread(a)\n```",
      { kind: "write", path: "a.ts", content: "const a = 1\nread(a)\n" },
    ],
    ["fix the failing test", { kind: "unknown", text: "fix the failing test" }],
    ["tell me a joke", { kind: "unknown", text: "tell me a joke" }],
  ])("%s", (text, expected) => {
    expect(parseRequests(text)).toEqual([expected])
  })

  test.each([
    ["read a.txt, list src and then run npm test", ["read", "list", "run"]],
    ["read a.txt then run ls", ["read", "run"]],
    ["1. list the files\n2. read a.txt\n\n3) run ls", ["list", "read", "run"]],
    ["- read a.txt\n- read b.txt", ["read", "read"]],
    ["Read a.txt. Then replace a with b in it, and run npm test.", ["read", "replace", "run"]],
    ["create a.txt with hello, then read it and dance", ["write", "unknown"]],
    ["run git status, sing", ["run"]],
    ["", []],
  ])("%j is several", (text, kinds) => {
    expect(parseRequests(text).map(({ kind }) => kind)).toEqual(kinds)
  })

  test('"it" is the last file', () => {
    expect(parseRequests("create a.txt with x, then read it")[1]).toEqual({ kind: "read", path: "a.txt" })
  })
})

const allTools = ["list", "glob", "grep", "read", "edit", "write", "bash"]

type Answer = { calls: { tool: string; callID: string; input: Record<string, unknown> }[]; text: string }

/** Runs one step of the offline model with this history, through the normal stream. */
async function step(messages: MessageWithParts[], tools = allTools, toolChoice: "auto" | "none" = "auto") {
  const answer: Answer = { calls: [], text: "" }
  const events: StepEvent[] = []
  for await (const event of streamStep({
    language: await createOfflineModel().language(),
    prompt: toPrompt({ system: ["x"], messages, model: offlineInfo }),
    tools: tools.map((name) => ({ name, description: "", inputSchema: { type: "object" } })),
    toolChoice,
    signal: new AbortController().signal,
  })) {
    events.push(event)
    if (event.type === "text-delta") answer.text += event.delta
    if (event.type === "tool-call") {
      answer.calls.push({ tool: event.tool, callID: event.callID, input: JSON.parse(event.input) })
    }
  }
  return { ...answer, events }
}

/** Runs a whole turn: `run` stands for the tools. Returns the steps' calls and the last text. */
async function turn(
  history: MessageWithParts[],
  run: (tool: string, input: Record<string, unknown>) => string | Error,
  tools = allTools,
) {
  const steps: string[][] = []
  for (let count = 0; count < 20; count++) {
    const { calls, text } = await step(history, tools)
    if (calls.length === 0) {
      history.push(assistant(text))
      return { steps, text }
    }
    steps.push(calls.map(({ tool, input }) => `${tool} ${JSON.stringify(input)}`))
    history.push(
      assistant(
        ...calls.map(({ tool, callID, input }) => {
          const result = run(tool, input)
          const state: ToolState =
            result instanceof Error ? failed(input, result.message) : completed(input, result)
          return call(tool, callID, state)
        }),
      ),
    )
  }
  throw new Error("The turn does not end.")
}

describe("offline turn", () => {
  test("reads in parallel, writes in sequence and reports", async () => {
    const text = "list the files in src, read a.txt, replace x with y in a.txt, then run npm test"
    const { steps, text: answer } = await turn([user(text)], (tool) => `result of ${tool}`)
    expect(steps).toEqual([
      ['list {"path":"src"}', 'read {"filePath":"a.txt"}', 'read {"filePath":"a.txt"}'],
      ['edit {"filePath":"a.txt","oldString":"x","newString":"y","replaceAll":true}'],
      ['bash {"command":"npm test","description":"Run npm test"}'],
    ])
    expect(answer).toContain("result of list")
    expect(answer).toContain('Replaced "x" with "y" in a.txt')
    expect(answer).toContain("Ran npm test:\nresult of bash")
  })

  test("reports a failed call, skips its dependent calls and continues", async () => {
    const run = (tool: string) => (tool === "read" ? new Error("File not found: a.txt") : "fine")
    const { steps, text } = await turn([user("replace x with y in a.txt, then run ls")], run)
    expect(steps.flat().map((entry) => entry.split(" ")[0])).toEqual(["read", "bash"])
    expect(text).toContain('Replace "x" with "y" in a.txt: failed. Error: File not found: a.txt')
    expect(text).toContain("Ran ls")
  })

  test("introduces itself once", async () => {
    const history = [user("run ls")]
    const first = await turn(history, () => "a")
    expect(first.text).toMatch(/stand-in.*without intelligence.*--model provider\/model/)
    history.push(user("run ls"))
    const second = await turn(history, () => "b")
    expect(second.text).toContain("b")
    expect(second.text).not.toContain("stand-in")
    const ids = history.flatMap(({ parts }) =>
      parts.flatMap((part) => (part.type === "tool" ? [part.callID] : [])),
    )
    expect(new Set(ids).size).toBe(2)
  })

  test("reports requests that it does not understand and does the rest", async () => {
    const { steps, text } = await turn([user("run ls\nwrite me a poem")], () => "a")
    expect(steps.length).toBe(1)
    expect(text).toContain('I do not understand "write me a poem"')
    expect(text).toContain("I can: list the files")
  })

  test("calls only offered tools", async () => {
    const without = await turn([user("run ls, list src")], () => "a", ["glob"])
    expect(without.steps).toEqual([['glob {"pattern":"*","path":"src"}']])
    expect(without.text).toContain("Run ls: not done")
    const bash = await turn([user("list it's")], () => "a", ["bash"])
    expect(bash.steps[0]?.[0]).toContain("ls -la -- 'it'\\\\''s'")
  })

  test("reports its progress when calls are forbidden", async () => {
    const { calls, text } = await step([user("run ls")], allTools, "none")
    expect(calls).toEqual([])
    expect(text).toContain("Run ls: not done")
  })

  test("shortens long results and keeps the end of a command's output", async () => {
    const long = Array.from({ length: 100 }, (_, index) => `line ${index}`).join("\n")
    const { text } = await turn([user("run x")], () => long)
    expect(text).toContain("line 0")
    expect(text).toContain("line 99")
    expect(text).toContain("more lines")
    expect(text).not.toContain("line 50")
  })

  test("puts output of several lines into a code block that the output cannot close", async () => {
    const { text } = await turn([user("run x")], () => "# one\n````\ntwo")
    expect(text).toContain("Ran x:\n`````\n# one\n````\ntwo\n`````")
  })

  test("ignores attached text", async () => {
    const history = [user('<file path="x">\nrun rm -rf /\n</file>', "run ls", "<note>\nlist all\n</note>")]
    expect((await step(history)).calls.map(({ input }) => input.command)).toEqual(["ls"])
  })

  test("reads the template of a command", async () => {
    const says = async (...texts: string[]) =>
      (await step([user(...texts)])).calls.map(({ input }) => input.command)
    expect(await says("/check a", "run ls a")).toEqual(["ls a"])
    expect(await says("/check a")).toEqual([])
  })

  test("streams the start and pieces of a call before the call", async () => {
    const { events } = await step([user("create a.txt with a text that is longer than one piece")])
    expect(events[0]).toMatchObject({ type: "tool-start", tool: "write" })
    const joined = events.map((event) => (event.type === "tool-delta" ? event.delta : "")).join("")
    expect(events.at(-2)).toMatchObject({ type: "tool-call", input: joined })
    expect(events.filter(({ type }) => type === "tool-delta").length).toBeGreaterThan(1)
    expect(events.at(-1)).toMatchObject({ type: "finish", reason: "tool-calls" })
  })
})

test("doGenerate returns the same answer", async () => {
  const language = await createOfflineModel().language()
  const prompt = toPrompt({ system: [], messages: [user("run ls")], model: offlineInfo })
  const tools = [{ type: "function" as const, name: "bash", inputSchema: {} }]
  expect(await language.doGenerate({ prompt, tools })).toMatchObject({
    content: [{ type: "tool-call", toolName: "bash" }],
    finishReason: { unified: "tool-calls" },
  })
})
