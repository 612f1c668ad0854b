import { describe, expect, test } from "vitest"
import { dialectNames } from "../../src/model/synthetic/dialect.ts"
import { dialectNamed } from "../../src/model/synthetic/dialects.ts"
import type { Reply, ScriptedCall } from "../../src/testing/reply.ts"
import { startEngine } from "./engine.ts"
import { run, toolParts } from "./run.ts"

/** What a model does in a session, in whatever way it calls. */
const steps: readonly { text: string; calls: ScriptedCall[] }[] = [
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
      { name: "edit", arguments: { filePath: "a.txt", oldString: "one\n", newString: "eins\n\tzwei → 2\n" } },
    ],
  },
  {
    text: "I list what is open.",
    calls: [{ name: "todowrite", arguments: { todos: [{ content: "end", status: "pending" }] } }],
  },
  { text: "Wrong ones.", calls: [{ name: "read", arguments: { filePath: "none.txt" } }] },
  { text: "That was it.", calls: [] },
]

const files = { "a.txt": 'one\nb<c>&"d"\n' }

/** Each call with its arguments and what came of it; times and ids are another at each run. */
async function callsMade(script: Reply[], model: object) {
  await using engine = await startEngine(script)
  const options = { baseURL: engine.server.url, apiKey: "k" }
  await using chosen = await startEngine([], {
    files,
    permission: "allow",
    providers: { test: { options, models: { m: model } } },
  })
  const { end, session } = await run(chosen)
  expect(end).toMatchObject({ status: "completed", text: "That was it." })
  const calls = (await toolParts(session)).map(({ tool, state }) => {
    const { status, input } = state
    const said = status === "completed" ? state.output : status === "error" ? state.error : ""
    return { tool, input, status, said: said.replaceAll(chosen.project.directory, "DIR") }
  })
  return { calls, file: await chosen.project.read("a.txt") }
}

const native = () =>
  callsMade(
    steps.map((step) => ({ ...step })),
    {},
  )

describe("a session makes the same calls, with the same results, natively and", () => {
  test.each(dialectNames)("as text in the dialect %s", async (toolDialect) => {
    const dialect = dialectNamed(toolDialect)
    const script = steps.map(
      ({ text, calls }): Reply => ({
        text:
          calls.length === 0
            ? text
            : `${text}\n\n${calls.map((call) => dialect.write(call.name, argumentsOf(call))).join("\n\n")}`,
        pieceSize: 5,
      }),
    )
    const [one, other] = await Promise.all([
      native(),
      callsMade(script, { toolCalling: "synthetic", toolDialect }),
    ])
    expect(one.calls.map(({ tool }) => tool)).toEqual(["read", "grep", "edit", "todowrite", "read"])
    expect(other).toEqual(one)
  })
})

/** The arguments as a record: here none is broken on purpose. */
function argumentsOf({ arguments: given }: ScriptedCall): Record<string, unknown> {
  return typeof given === "string" ? {} : given
}
