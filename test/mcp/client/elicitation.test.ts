import type { ElicitRequestFormParams, PrimitiveSchemaDefinition } from "@modelcontextprotocol/client"
import { describe, expect, test } from "vitest"
import { elicit, formField } from "../../../src/mcp/client/elicitation.ts"
import type { Question } from "../../../src/schema/question.ts"

const never = new AbortController().signal

describe("formField", () => {
  test.each<[PrimitiveSchemaDefinition, string[], unknown]>([
    [{ type: "string", minLength: 2 }, ["a"], "enter at least 2 characters"],
    [{ type: "string", maxLength: 2 }, ["abc"], "enter at most 2 characters"],
    [{ type: "string", format: "date" }, ["2026-02-30"], "enter a date such as 2026-01-31"],
    [
      { type: "string", format: "date-time" },
      ["2026-01-31T12:00:00+01:00"],
      { value: "2026-01-31T12:00:00+01:00" },
    ],
    [{ type: "string", format: "uri" }, ["nowhere"], "enter a URL such as https://example.com"],
    [{ type: "number", minimum: 1 }, ["0.5"], "enter a number of at least 1"],
    [{ type: "number", maximum: 5 }, ["6"], "enter a number of at most 5"],
    [{ type: "integer", minimum: 1, maximum: 5 }, ["6"], "enter a whole number from 1 to 5"],
    [{ type: "string", minLength: 1 }, [""], "enter at least 1 character"],
    [{ type: "number" }, [" 1e3 "], { value: 1000 }],
    [{ type: "number" }, [""], "enter a number"],
    [{ type: "integer" }, ["1.5"], "enter a whole number"],
    [{ type: "boolean" }, ["no"], { value: false }],
    [{ type: "boolean" }, ["perhaps"], "answer Yes or No"],
    [{ type: "string", enum: ["a"] }, ["b"], 'choose one of the options ("b" is not an option)'],
    [{ type: "string", enum: ["a"], enumNames: ["First"] }, ["First"], { value: "a" }],
    [
      { type: "array", items: { type: "string", enum: ["a", "b"] }, maxItems: 1 },
      ["a", "b"],
      "choose at most 1 option",
    ],
    [{ type: "array", items: { anyOf: [{ const: "a", title: "A" }] } }, ["A"], { value: ["a"] }],
  ])("reads %j answered with %j", (schema, words, expected) => {
    const read = formField("f", schema, true).read(words)
    expect(read).toEqual(typeof expected === "string" ? { problem: expected } : expected)
  })

  test("names the choices in the question if there are too many for options", () => {
    const many = Array.from({ length: 21 }, (_, index) => `c${index}`)
    const { question, read } = formField("f", { type: "string", enum: many }, true)
    expect(question.options).toBeUndefined()
    expect(question.question).toContain("one of c0, c1,")
    expect(read(["c20"])).toEqual({ value: "c20" })
    const several = formField("f", { type: "array", items: { type: "string", enum: many } }, true)
    expect(several.question.question).toContain("one or more of c0, c1,")
  })
})

describe("elicit", () => {
  const form = (properties: ElicitRequestFormParams["requestedSchema"]["properties"]) => ({
    message: "Sure?",
    requestedSchema: { type: "object" as const, properties, required: Object.keys(properties) },
  })

  test.each([
    ["Accept", { action: "accept", content: {} }],
    ["Decline", { action: "decline" }],
    ["Maybe", { action: "decline" }],
  ])("asks for consent if the form has no fields: %s", async (word, expected) => {
    expect(await elicit("s", form({}), { question: async () => [[word]] }, never)).toEqual(expected)
  })

  test("cancels after three invalid answers", async () => {
    const asked: Question[][] = []
    const question = async (questions: Question[]) => {
      asked.push(questions)
      return [["many"]]
    }
    const result = await elicit("s", form({ n: { type: "number" } }), { question }, never)
    expect(result).toEqual({ action: "cancel" })
    expect(asked).toHaveLength(3)
  })

  test("shows the form itself if possible, and drops invalid values", async () => {
    const shown: unknown[] = []
    const asked = form({ n: { type: "number", default: 7 } })
    const result = await elicit(
      "s",
      asked,
      {
        async form(given) {
          shown.push(given)
          return { action: "accept", content: { n: 8, odd: { nested: true } } }
        },
      },
      never,
    )
    expect(shown).toEqual([
      { message: expect.stringContaining("MCP server s asks"), requestedSchema: asked.requestedSchema },
    ])
    expect(result).toEqual({ action: "accept", content: { n: 8 } })
  })
})
