import { writeFile } from "node:fs/promises"
import { describe, expect, test } from "vitest"
import { type Dialect, dialectNames } from "../../src/synthetic/dialect.ts"
import { dialectNamed } from "../../src/synthetic/dialects.ts"
import type { Reply, ScriptedCall } from "../../src/testing/reply.ts"
import { startEngine } from "./engine.ts"
import { run, toolParts } from "./run.ts"

type Step = { text: string; calls: ScriptedCall[] }

const end: Step = { text: "That was it.", calls: [] }

/** Steps of a model, independent of how it calls tools. */
const sessions: Readonly<Record<string, readonly Step[]>> = {
  "work on a file": [
    {
      text: "I look.",
      calls: [
        { name: "read", arguments: { filePath: "a.txt", limit: 2 } },
        { name: "grep", arguments: { pattern: 'b<c>&"d"', path: "." } },
      ],
    },
    {
      text: "I change it.",
      calls: [
        {
          name: "edit",
          arguments: { filePath: "a.txt", oldString: "one\n", newString: "eins\n\tzwei → 2\n" },
        },
      ],
    },
    {
      text: "I list what is open.",
      calls: [{ name: "todowrite", arguments: { todos: [{ content: "end", status: "pending" }] } }],
    },
    { text: "Wrong ones.", calls: [{ name: "read", arguments: { filePath: "none.txt" } }] },
    end,
  ],
  "many calls side by side": [
    {
      text: "All at once.",
      calls: [
        ...["a.txt", "b.md", "a.txt"].map((filePath) => ({ name: "read", arguments: { filePath } })),
        { name: "glob", arguments: { pattern: "*.md" } },
        { name: "write", arguments: { filePath: "c.md", content: "# Calls\n\n```json\n{}\n```\n" } },
      ],
    },
    {
      text: "Several in one.",
      calls: [
        {
          name: "batch",
          arguments: {
            calls: [
              { tool: "read", parameters: { filePath: "c.md" } },
              { tool: "read", parameters: { filePath: "b.md" } },
            ],
          },
        },
      ],
    },
    end,
  ],
  "slips of the model": [
    { text: "Nothing named.", calls: [{ name: "read", arguments: {} }] },
    { text: "A number too small.", calls: [{ name: "read", arguments: { filePath: "a.txt", limit: -1 } }] },
    {
      text: "Not there.",
      calls: [{ name: "edit", arguments: { filePath: "a.txt", oldString: "x", newString: "y" } }],
    },
    end,
  ],
  "a text about calls": [
    {
      text: "I write it down.",
      calls: [
        {
          name: "write",
          arguments: {
            filePath: "b.md",
            content:
              'Write\n\n<tool_call>\n{"name": "read", "arguments": {"filePath": "a.txt"}}\n</tool_call>\n\nor [TOOL_CALLS][] or <function=read>.\n',
          },
        },
      ],
    },
    end,
  ],
  "an image": [{ text: "I look.", calls: [{ name: "read", arguments: { filePath: "dot.png" } }] }, end],
}

const png = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
)

const files = { "a.txt": 'one\nb<c>&"d"\n', "b.md": "# B\n" }

/** Returns each call with its arguments and outcome, without times and ids. */
async function callsMade(script: Reply[], model: object) {
  await using engine = await startEngine(script)
  const options = { baseURL: engine.server.url, apiKey: "k" }
  await using chosen = await startEngine([], {
    files,
    permission: "allow",
    experimental: { batch_tool: true },
    providers: { test: { options, models: { m: { attachment: true, ...model } } } },
  })
  await writeFile(chosen.project.path("dot.png"), png)
  const { end, session } = await run(chosen)
  expect(end).toMatchObject({ status: "completed", text: "That was it." })
  const calls = (await toolParts(session)).map(({ tool, state }) => {
    const { status, input } = state
    const said = status === "completed" ? state.output : status === "error" ? state.error : ""
    const files = status === "completed" ? (state.attachments ?? []).map(({ url }) => url) : []
    return {
      tool,
      input,
      status,
      files,
      said: said.replaceAll(chosen.project.directory, "DIR"),
    }
  })
  const sent = JSON.stringify(engine.server.requests.at(-1)?.body)
  return {
    calls,
    file: await chosen.project.read("a.txt"),
    page: await chosen.project.read("b.md"),
    imageSent: sent.includes(png.toString("base64")),
  }
}

const native = (steps: readonly Step[]) =>
  callsMade(
    steps.map((step) => ({ ...step })),
    {},
  )

function asText(steps: readonly Step[], dialect: Dialect): Reply[] {
  return steps.map(({ text, calls }) => ({
    text: [text, ...calls.map((call) => dialect.write(call.name, argumentsOf(call)))].join("\n\n"),
    pieceSize: 5,
  }))
}

describe.each(Object.entries(sessions))(
  "%s: the same calls, with the same results, natively and",
  (name, steps) => {
    test.each(dialectNames)("as text in the dialect %s", async (toolDialect) => {
      const [one, other] = await Promise.all([
        native(steps),
        callsMade(asText(steps, dialectNamed(toolDialect)), { toolCalling: "synthetic", toolDialect }),
      ])
      const made = one.calls.filter(({ tool }) => tool !== "invalid").length
      expect(made).toBeGreaterThan(0)
      expect(one.imageSent).toBe(name === "an image")
      expect(other).toEqual(one)
    })
  },
)

describe("a call of a tool that is not offered fails with the same text", () => {
  const steps: Step[] = [
    {
      text: "I look.",
      calls: [
        { name: "read_pages", arguments: { filePath: "a.txt" } },
        { name: "read", arguments: { filePath: "a.txt" } },
      ],
    },
    end,
  ]

  // Plain JSON and a list in brackets could also be an answer.
  test.each(["hermes", "json-fence", "mistral", "xml"] as const)("in the dialect %s", async (toolDialect) => {
    const [one, other] = await Promise.all([
      native(steps),
      callsMade(asText(steps, dialectNamed(toolDialect)), { toolCalling: "synthetic", toolDialect }),
    ])
    expect(one.calls[0]).toMatchObject({
      status: "error",
      said: expect.stringContaining("this tool does not exist"),
    })
    expect(other).toEqual(one)
  })
})

/** Returns the arguments as a record; none is malformed here. */
function argumentsOf({ arguments: given }: ScriptedCall): Record<string, unknown> {
  return typeof given === "string" ? {} : given
}
