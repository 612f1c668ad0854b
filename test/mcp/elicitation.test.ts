import type { ElicitRequestFormParams, PrimitiveSchemaDefinition } from "@modelcontextprotocol/client"
import { describe, expect, test } from "vitest"
import { elicit } from "../../src/mcp/elicitation.ts"
import { formField } from "../../src/mcp/elicitation-field.ts"
import type { Question } from "../../src/schema/question.ts"

describe("a field", () => {
  test.each<[PrimitiveSchemaDefinition, string[], unknown]>([
    [{ type: "string", minLength: 2 }, ["a"], "give at least 2 characters"],
    [{ type: "string", maxLength: 2 }, ["abc"], "give at most 2 characters"],
    [{ type: "string", format: "date" }, ["2026-02-30"], "give a date such as 2026-01-31"],
    [
      { type: "string", format: "date-time" },
      ["2026-01-31T12:00:00+01:00"],
      { value: "2026-01-31T12:00:00+01:00" },
    ],
    [{ type: "string", format: "uri" }, ["nowhere"], "give an address such as https://example.com"],
    [{ type: "number", minimum: 1 }, ["0.5"], "give a number from 1"],
    [{ type: "number" }, [" 1e3 "], { value: 1000 }],
    [{ type: "number" }, [""], "give a number"],
    [{ type: "integer" }, ["1.5"], "give a whole number"],
    [{ type: "boolean" }, ["no"], { value: false }],
    [{ type: "boolean" }, ["perhaps"], "answer Yes or No"],
    [{ type: "string", enum: ["a"] }, ["b"], '"b" is none of the choices'],
    [{ type: "string", enum: ["a"], enumNames: ["First"] }, ["First"], { value: "a" }],
    [
      { type: "array", items: { type: "string", enum: ["a", "b"] }, maxItems: 1 },
      ["a", "b"],
      "choose at most 1",
    ],
    [{ type: "array", items: { anyOf: [{ const: "a", title: "A" }] } }, ["A"], { value: ["a"] }],
  ])("%j answered with %j", (schema, words, expected) => {
    const read = formField("f", schema, true).read(words)
    expect(read).toEqual(typeof expected === "string" ? { problem: expected } : expected)
  })

  test("with more choices than can be shown is written, and names them", () => {
    const many = Array.from({ length: 21 }, (_, index) => `c${index}`)
    const { question, read } = formField("f", { type: "string", enum: many }, true)
    expect(question.options).toBeUndefined()
    expect(question.question).toContain("of c0, c1,")
    expect(read(["c20"])).toEqual({ value: "c20" })
  })
})

describe("a form", () => {
  const form = (properties: ElicitRequestFormParams["requestedSchema"]["properties"]) => ({
    message: "Sure?",
    requestedSchema: { type: "object" as const, properties, required: Object.keys(properties) },
  })

  test.each([
    ["Accept", { action: "accept", content: {} }],
    ["Decline", { action: "decline" }],
    ["Maybe", { action: "decline" }],
  ])("without fields asks for leave: %s", async (word, expected) => {
    expect(await elicit("s", form({}), async () => [[word]])).toEqual(expected)
  })

  test("is given up after three answers that do not fit", async () => {
    const asked: Question[][] = []
    const result = await elicit("s", form({ n: { type: "number" } }), async (questions) => {
      asked.push(questions)
      return [["many"]]
    })
    expect(result).toEqual({ action: "cancel" })
    expect(asked).toHaveLength(3)
  })
})
