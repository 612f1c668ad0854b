import type { LanguageModelV4Prompt } from "@ai-sdk/provider"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { createPromptBuilder, toPrompt } from "../../src/model/history-to-prompt.ts"
import type { ModelInfo } from "../../src/model/model.ts"
import type { MessageWithParts } from "../../src/schema/message.ts"
import { pending, start } from "../../src/schema/tool-moves.ts"
import { assistant, call, completed, failed, ref, user } from "./history.ts"

const model: ModelInfo = { ref, name: "m", toolCall: true, limit: {} }
const png = "data:image/png;base64,iVBORw0KGgo="

function convert(messages: MessageWithParts[], info: ModelInfo = model) {
  return toPrompt({ system: [], messages, model: info })
}

test("converts system prompts, text, calls and results in order", () => {
  const messages = [
    user("hello"),
    assistant(
      "On it.",
      call("read", "c1", completed({ filePath: "a" }, "A")),
      call("bash", "c2", failed({}, "no")),
    ),
    assistant("Done."),
  ]
  expect(toPrompt({ system: ["one", "", "two"], messages, model })).toEqual([
    { role: "system", content: "one" },
    { role: "system", content: "two" },
    { role: "user", content: [{ type: "text", text: "hello" }] },
    {
      role: "assistant",
      content: [
        { type: "text", text: "On it." },
        { type: "tool-call", toolCallId: "c1", toolName: "read", input: { filePath: "a" } },
        { type: "tool-call", toolCallId: "c2", toolName: "bash", input: {} },
      ],
    },
    {
      role: "tool",
      content: [
        { type: "tool-result", toolCallId: "c1", toolName: "read", output: { type: "text", value: "A" } },
        {
          type: "tool-result",
          toolCallId: "c2",
          toolName: "bash",
          output: { type: "text", value: "Error: no" },
        },
      ],
    },
    { role: "assistant", content: [{ type: "text", text: "Done." }] },
  ])
})

test("adds a result to an interrupted call", () => {
  const waiting = pending('{"command":"rm')
  const running = start(pending(), { command: "make" }, 1)
  const [, results] = convert([assistant(call("bash", "c1", waiting), call("bash", "c2", running))])
  const texts = results?.role === "tool" ? results.content.map((part) => "output" in part && part.output) : []
  expect(texts).toMatchObject([
    { value: expect.stringMatching(/^Error: .*before it started/) },
    { value: expect.stringMatching(/^Error: .*may have taken effect/) },
  ])
})

test("puts exactly one result for each call after its message", () => {
  const state = fc.oneof(
    fc.constant(pending("{")),
    fc.constant(start(pending(), {}, 1)),
    fc.string().map((output) => completed({}, output)),
    fc.string().map((error) => failed({ a: error }, error)),
  )
  const message = fc.oneof(
    fc.string().map((text) => user(text)),
    fc
      .tuple(fc.string(), fc.array(state, { maxLength: 4 }))
      .map(([text, states]) => assistant(text, ...states.map((one, index) => call("t", `c${index}`, one)))),
  )
  fc.assert(
    fc.property(fc.array(message, { maxLength: 8 }), (messages) => {
      const prompt = convert(messages)
      for (const [index, entry] of prompt.entries()) {
        expect(entry.content.length).toBeGreaterThan(0)
        if (entry.role === "tool") expect(prompt[index - 1]?.role).toBe("assistant")
        if (entry.role !== "assistant") continue
        const ids = entry.content.flatMap((part) => (part.type === "tool-call" ? [part.toolCallId] : []))
        const next = prompt[index + 1]
        const answered =
          next?.role === "tool"
            ? next.content.flatMap((part) => (part.type === "tool-result" ? [part.toolCallId] : []))
            : []
        expect(answered).toEqual(ids)
      }
      expect(JSON.stringify(prompt)).not.toMatch(/\\ud[89a-f]/i)
    }),
  )
})

test.each([
  ["openai-compatible", "{half"],
  ["openai", "{half"],
  ["anthropic", { malformed: "{half" }],
  ["google", { malformed: "{half" }],
  ["other", { malformed: "{half" }],
] as const)("passes malformed arguments to %s in a form that it accepts", (family, input) => {
  const state = { ...failed({}, "not valid JSON"), raw: "{half" }
  expect(convert([assistant(call("t", "c", state))], { ...model, family })[0]).toMatchObject({
    content: [{ type: "tool-call", input }],
  })
})

test("replaces lone surrogates", () => {
  const half = "x\ud83d"
  const prompt = convert([
    user(half),
    assistant(half, call("t", "c", completed({ [half]: [{ a: half }] }, half))),
  ])
  expect(JSON.stringify(prompt)).not.toContain("\\ud83d")
  expect(JSON.stringify(prompt)).toContain("x\ufffd")
})

test("drops empty messages and reasoning without an answer", () => {
  const thought = { type: "reasoning", text: "hm", time: { start: 1 } } as const
  expect(convert([user(), assistant(), assistant(" \n"), assistant(thought)])).toEqual([])
})

test("sends reasoning and metadata only to the model that wrote them", () => {
  const metadata = { anthropic: { signature: "s" } }
  const thought = { type: "reasoning", text: "hm", time: { start: 1 }, metadata } as const
  const history = [assistant(thought, { type: "text", text: "hi", metadata })]
  expect(convert(history)).toEqual([
    {
      role: "assistant",
      content: [
        { type: "reasoning", text: "hm", providerOptions: metadata },
        { type: "text", text: "hi", providerOptions: metadata },
      ],
    },
  ])
  const other = { ...model, ref: { providerID: "test", modelID: "other" } }
  expect(convert(history, other)).toEqual([{ role: "assistant", content: [{ type: "text", text: "hi" }] }])
})

test("replaces invalid tool names", () => {
  const [message] = convert([assistant(call("functions.read file!", "c", failed({}, "no such tool")))])
  expect(message?.content[0]).toMatchObject({ toolName: "functions_read_file_" })
})

describe("files", () => {
  const image = { type: "file", mime: "image/png", url: png, filename: "a.png" } as const
  const withFiles: ModelInfo = { ...model, attachment: true }

  test("sends images of the user to a model that accepts them", () => {
    expect(convert([user("look", image)], withFiles)).toMatchObject([
      {
        content: [
          { type: "text" },
          {
            type: "file",
            mediaType: "image/png",
            filename: "a.png",
            data: { type: "data", data: "iVBORw0KGgo=" },
          },
        ],
      },
    ])
  })

  test("sends a note instead to any other model", () => {
    const [message] = convert([user("look", image)])
    expect(message?.content[1]).toMatchObject({
      type: "text",
      text: expect.stringMatching(/^\[A file \(image\/png, a\.png, 1 KB\) was not sent: .*only text\.\]$/),
    })
  })

  test.each<[string, string, number, number, string, RegExp | undefined]>([
    ["anthropic", "image/png", 100, 3_900_000, "sent", undefined],
    ["anthropic", "image/png", 100, 4_000_000, "not sent", /100 × 50 pixels, 4\.0 MB\).*at most 3\.9 MB/],
    ["anthropic", "image/png", 8001, 100, "not sent", /8001 × 50 pixels.*at most 8000 pixels/],
    ["anthropic", "image/bmp", 100, 100, "not sent", /does not accept files of this type/],
    ["google", "image/gif", 100, 100, "not sent", /does not accept files of this type/],
    ["openai", "image/png", 9000, 6_000_000, "sent", undefined],
    ["openai-compatible", "image/bmp", 9000, 30_000_000, "sent", undefined],
  ])("%s, %s of %i pixels and %i bytes: %s", (family, mime, width, bytes, _, reason) => {
    const content = Buffer.alloc(bytes)
    content.write("\x89PNG", "latin1")
    content.writeUInt32BE(width, 16)
    content.writeUInt32BE(50, 20)
    const file = { type: "file", mime, url: `data:${mime};base64,${content.toString("base64")}` } as const
    const [message] = convert([user("look", file)], {
      ...withFiles,
      family: family as NonNullable<ModelInfo["family"]>,
    })
    const part = message?.content[1]
    if (reason) expect(part).toMatchObject({ type: "text", text: expect.stringMatching(reason) })
    else expect(part).toMatchObject({ type: "file", mediaType: mime })
  })

  test("sends text of a data URL as text and drops paths to text files", () => {
    const inline = { type: "file", mime: "text/plain", url: "data:text/plain,h%C3%A4llo" } as const
    const path = { type: "file", mime: "text/plain", url: "/w/a.txt" } as const
    expect(convert([user(inline, path)])).toMatchObject([{ content: [{ type: "text", text: "hällo" }] }])
  })

  test("sends a data URL with invalid escapes unchanged, so that it does not end each later prompt", () => {
    const file = { type: "file", mime: "text/plain", url: "data:text/plain,100%" } as const
    expect(convert([user(file)])).toMatchObject([{ content: [{ type: "text", text: "100%" }] }])
  })

  test("sends returned files in the result or in a user message", () => {
    const attachments = [{ type: "file" as const, mime: "image/png", url: png }]
    const history = [assistant(call("read", "c", completed({}, "Image read.", attachments)))]
    expect(convert(history, withFiles)).toMatchObject([
      { role: "assistant" },
      { role: "tool", content: [{ output: { type: "text", value: "Image read." } }] },
      { role: "user", content: [{ type: "text" }, { type: "file", mediaType: "image/png" }] },
    ])
    expect(convert(history, { ...withFiles, family: "anthropic" })).toMatchObject([
      { role: "assistant" },
      {
        role: "tool",
        content: [{ output: { type: "content", value: [{ text: "Image read." }, { type: "file" }] } }],
      },
    ])
    expect(convert(history)).toMatchObject([
      { role: "assistant" },
      { role: "tool", content: [{ output: { value: expect.stringContaining("was not sent") } }] },
    ])
  })
})

describe("anthropic", () => {
  const anthropic: ModelInfo = { ...model, family: "anthropic" }

  test("replaces invalid characters of call ids in calls and results", () => {
    const prompt = convert([assistant(call("read", "functions.read:0", completed({}, "")))], anthropic)
    expect(prompt).toMatchObject([
      { content: [{ toolCallId: "functions_read_0" }] },
      { content: [{ toolCallId: "functions_read_0" }] },
    ])
  })

  test("marks the first system prompts and the last messages for the cache", () => {
    const build = createPromptBuilder()
    const first = user("one")
    const marksOf = (prompt: LanguageModelV4Prompt) =>
      prompt.map(({ role, content, providerOptions }) => {
        const last = role === "user" || role === "tool" ? content.at(-1)?.providerOptions : providerOptions
        return last?.anthropic
      })
    const mark = { cacheControl: { type: "ephemeral" } }
    const before = build({ system: ["a", "b"], messages: [first], model: anthropic })
    expect(marksOf(before)).toEqual([mark, mark, mark])
    const after = build({
      system: ["a", "b"],
      messages: [first, assistant("x"), user("y")],
      model: anthropic,
    })
    expect(marksOf(after)).toEqual([mark, mark, undefined, mark, mark])
    const many = build({ system: ["a", "b", "c"], messages: [first], model: anthropic })
    expect(marksOf(many)).toEqual([mark, mark, undefined, mark])
  })
})

describe("prompt builder", () => {
  test("keeps completed messages and converts others again", () => {
    const build = createPromptBuilder()
    const settled = user("one")
    const open = assistant(call("bash", "c", start(pending(), {}, 1)))
    delete open.message.time.completed
    const messages = [settled, open]
    const before = build({ system: [], messages, model })
    const part = open.parts[0]
    if (part?.type === "tool") part.state = completed({}, "done")
    const after = build({ system: [], messages, model })
    expect(after[0]).toBe(before[0])
    expect(after[2]).toMatchObject({ content: [{ output: { value: "done" } }] })
  })

  test("returns the same messages for a longer history, also where a server needs a message between", () => {
    const build = createPromptBuilder()
    const mistral = { ...model, ref: { ...model.ref, modelID: "mistral-large" } }
    const messages = [user("a"), assistant(call("t", "c", completed({}, "r"))), user("b")]
    const before = build({ system: ["s"], messages, model: mistral })
    messages.push(assistant("d"))
    const after = build({ system: ["s"], messages, model: mistral })
    expect(after.map(({ role }) => role)).toEqual([
      ...["system", "user", "assistant", "tool", "assistant", "user", "assistant"],
    ])
    for (const [index, message] of before.entries()) expect(after[index]).toBe(message)
  })

  test("matches a fresh conversion after messages were added, removed and changed", () => {
    const build = createPromptBuilder()
    const messages = [user("a"), assistant("b", call("t", "c", completed({}, "r"))), user("d")]
    build({ system: [], messages, model })
    messages[1]?.parts.pop()
    messages.shift()
    messages.push(user("e"))
    expect(build({ system: [], messages, model })).toEqual(convert(messages))
    const other = { ...model, family: "anthropic" as const }
    expect(build({ system: [], messages, model: other })).toEqual(convert(messages, other))
  })
})
