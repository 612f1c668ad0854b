import fc from "fast-check"
import { expect, test } from "vitest"
import { createBodyWriter } from "../../src/model/request-body.ts"

const text = fc.oneof(
  fc.string({ unit: "grapheme", maxLength: 200 }),
  fc.string({ unit: "binary", maxLength: 200 }),
)

const message = fc.oneof(
  fc.record({ role: fc.constant("user"), content: text }),
  fc.record({ role: fc.constant("user"), content: fc.array(fc.record({ type: fc.constant("text"), text })) }),
  fc.record({
    role: fc.constant("assistant"),
    content: fc.option(text),
    tool_calls: fc.array(
      fc.record({
        id: text,
        type: fc.constant("function"),
        function: fc.record({ name: text, arguments: text }),
      }),
    ),
  }),
)

const tool = fc.record({
  type: fc.constant("function"),
  function: fc.record({
    name: text,
    description: fc.option(text, { nil: undefined }),
    parameters: fc.option(fc.dictionary(text, fc.jsonValue()), { nil: undefined }),
  }),
})

test("a body says the same as before, in the first request and in those that repeat its texts", () => {
  const body = fc.record({
    model: text,
    messages: fc.array(message, { maxLength: 6 }),
    tools: fc.option(fc.array(tool, { maxLength: 3 }), { nil: undefined }),
    stream: fc.boolean(),
  })
  fc.assert(
    fc.property(body, body, (first, second) => {
      const write = createBodyWriter()
      for (const each of [first, { ...second, messages: [...first.messages, ...second.messages] }, first])
        expect(JSON.parse(JSON.stringify(write(each)))).toEqual(JSON.parse(JSON.stringify(each)))
    }),
  )
})

test("long texts, descriptions and schemas are written as ASCII", () => {
  const wide = "→ höher ".repeat(20)
  const call = { id: "c", type: "function", function: { name: "edit", arguments: JSON.stringify({ wide }) } }
  const json = JSON.stringify(
    createBodyWriter()({
      messages: [
        { role: "system", content: wide },
        { role: "assistant", content: null, tool_calls: [call] },
      ],
      tools: [
        {
          type: "function",
          function: { name: "edit", description: wide, parameters: { description: "…" } },
        },
      ],
    }),
  )
  expect(json).not.toMatch(/[^\0-\x7f]/)
  expect(json).toContain("\\u2192 h\\u00f6her")
})
