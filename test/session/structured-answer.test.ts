import { describe, expect, test } from "vitest"
import { only } from "../cli/run-tackle.ts"
import { startEngine } from "./engine.ts"
import { resultsOf, run } from "./run.ts"

const outputSchema = {
  type: "object",
  properties: { files: { type: "array", items: { type: "string" } }, count: { type: "integer", minimum: 0 } },
  required: ["files", "count"],
  additionalProperties: false,
}
const answer = { files: ["a.txt"], count: 1 }
const list = { name: "list", arguments: { path: "." } }
const give = (args: Record<string, unknown>) => ({ calls: [{ name: "final_answer", arguments: args }] })

/** An engine whose model supports schemas natively. */
function nativeEngine(script: Parameters<typeof startEngine>[0]) {
  return startEngine(script, { providers: {} }).then(async (engine) => {
    const options = { baseURL: engine.server.url, apiKey: "k" }
    const native = await startEngine([], {
      files: { "a.txt": "x" },
      providers: { test: { options, models: { m: { structured_output: true } } } },
    })
    return {
      ...native,
      server: engine.server,
      async [Symbol.asyncDispose]() {
        await native[Symbol.asyncDispose]()
        await engine[Symbol.asyncDispose]()
      },
    }
  })
}

describe("structured answers by a tool", () => {
  test("continues until the tool is called, then ends", async () => {
    await using engine = await startEngine([{ calls: [list] }, give(answer), { text: "In words." }], {
      files: { "a.txt": "x" },
    })
    const { end, session } = await run(engine, { outputSchema })
    expect(end).toMatchObject({ status: "completed", exitCode: 0, text: JSON.stringify(answer) })
    const [first] = engine.server.requests
    const offered = first?.body.tools?.find(({ function: { name } }) => name === "final_answer")
    expect(offered?.function.parameters).toEqual(outputSchema)
    expect(JSON.stringify(first?.body.messages)).toContain("call final_answer with the answer")
    expect(first?.body.response_format).toBeUndefined()
    expect((await resultsOf(session)).at(-1)).toBe("This is the answer.")

    const next = await run(engine, { session })
    expect(next.end.text).toBe("In words.")
    const names = engine.server.requests[2]?.body.tools?.map(({ function: { name } }) => name)
    expect(names).not.toContain("final_answer")
  })

  test("reports an invalid answer in the result of the call, twice", async () => {
    await using engine = await startEngine([
      give({ files: "a.txt" }),
      give({ files: [], count: -1 }),
      give(answer),
    ])
    const { end, session } = await run(engine, { outputSchema })
    expect(end).toMatchObject({ status: "completed", text: JSON.stringify(answer) })
    expect(await resultsOf(session)).toEqual([
      expect.stringContaining("count: expected number, got nothing"),
      expect.stringContaining("count: Too small"),
      "This is the answer.",
    ])
  })

  test("accepts text that is valid JSON, and repeats the request with the schema otherwise", async () => {
    await using engine = await startEngine([
      { text: "There is one file." },
      { text: `Here it is:\n\`\`\`json\n${JSON.stringify(answer, null, 2)}\n\`\`\`\n` },
    ])
    const { end } = await run(engine, { outputSchema })
    expect(end).toMatchObject({ status: "completed", text: JSON.stringify(answer) })
    const said = engine.server.requests[1]?.body.messages.at(-1)
    expect(said).toMatchObject({
      role: "user",
      content: expect.stringMatching(/invalid: it is not JSON\. Call final_answer.*\n\{"type":"object"/),
    })
  })

  test("fails the run with exit code 1 after the third invalid answer", async () => {
    await using engine = await startEngine([
      give({ count: 1 }),
      { text: '{"files":[1],"count":1}' },
      { text: "No." },
    ])
    const { end, events } = await run(engine, { outputSchema })
    expect(end).toMatchObject({ status: "failed", exitCode: 1, text: "No." })
    expect(only(events, "session.error")[0]?.error).toEqual({
      name: "output",
      message: "The answer did not match the schema after 3 attempts: it is not JSON.",
    })
    expect(engine.server.requests).toHaveLength(3)
    expect(JSON.stringify(engine.server.requests[2]?.body.messages)).toContain(
      "files.0: expected string, got 1",
    )
  })

  test("wraps a schema that is not an object, but not the answer", async () => {
    await using engine = await startEngine([give({ answer: ["a.txt"] })])
    const { end } = await run(engine, { outputSchema: { type: "array", items: { type: "string" } } })
    expect(end.text).toBe('["a.txt"]')
  })

  test("works when tools are text", async () => {
    const call = JSON.stringify({ name: "final_answer", arguments: answer })
    await using engine = await startEngine([{ text: `<tool_call>\n${call}\n</tool_call>` }])
    const options = { baseURL: engine.server.url, apiKey: "k" }
    await using spoken = await startEngine([], {
      providers: { test: { options, models: { m: { tool_call: false } } } },
    })
    expect((await run(spoken, { outputSchema })).end.text).toBe(JSON.stringify(answer))
  })
})

describe("structured answers by the server's own format", () => {
  test("sends the schema beside the tools, strict if it is closed", async () => {
    await using engine = await nativeEngine([{ calls: [list] }, { text: JSON.stringify(answer) }])
    const { end } = await run(engine, { outputSchema })
    expect(end).toMatchObject({ status: "completed", text: JSON.stringify(answer) })
    for (const { body } of engine.server.requests) {
      expect(body.response_format).toEqual({
        type: "json_schema",
        json_schema: { name: "answer", strict: true, schema: outputSchema },
      })
      const names = body.tools?.map(({ function: { name } }) => name)
      expect(names).toContain("read")
      expect(names).not.toContain("final_answer")
    }
  })

  test("is not strict for an open schema, and repeats the request for an invalid answer", async () => {
    await using engine = await nativeEngine([{ text: '{"files":[]}' }, { text: JSON.stringify(answer) }])
    const { additionalProperties: _, ...open } = outputSchema
    const { end } = await run(engine, { outputSchema: open })
    expect(end.text).toBe(JSON.stringify(answer))
    const [first, second] = engine.server.requests
    expect(first?.body.response_format).toMatchObject({ json_schema: { strict: false } })
    expect(JSON.stringify(second?.body.messages.at(-1))).toContain("count: expected number, got nothing")
  })
})

test("refuses a schema that cannot be checked before it asks the model", async () => {
  await using engine = await startEngine([])
  const { end, events } = await run(engine, { outputSchema: { type: "object", if: {}, else: {} } })
  expect(end.exitCode).toBe(2)
  expect(only(events, "session.error")[0]?.error.message).toContain("remove the unsupported keyword")
  expect(engine.server.requests).toHaveLength(0)
})

test("ends at a limit even if the answer is missing", async () => {
  await using engine = await startEngine(() => ({ text: "Not yet." }))
  const { end } = await run(engine, { outputSchema, maxSteps: 2 })
  expect(end).toMatchObject({ status: "limit", exitCode: 4 })
})
