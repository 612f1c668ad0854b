import { generateText, isStepCount } from "ai"
import { MockLanguageModelV4 } from "ai/test"
import { expect, test } from "vitest"
import { toAiTools } from "../../src/call/ai-tools.ts"
import { startEngine } from "../session/engine.ts"
import { tool } from "../session/run.ts"

const pixel =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

test("sends the files of a result to the model as content parts, and other results as text", async () => {
  const shot = tool("shot", async () => ({
    title: "shot",
    output: "Here it is.",
    attachments: [
      { type: "file", mime: "image/png", url: `data:image/png;base64,${pixel}`, filename: "a.png" },
      { type: "file", mime: "application/zip", url: "/tmp/a.zip" },
    ],
  }))
  const plain = tool("plain", async () => ({ title: "plain", output: "Only text." }))
  await using engine = await startEngine([], {
    tools: [shot, plain],
    permission: { shot: "allow", plain: "allow" },
  })
  const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } }
  const calls = ["shot", "plain"].map((toolName) => ({
    type: "tool-call" as const,
    toolCallId: toolName,
    toolName,
    input: "{}",
  }))
  const answers = [
    { content: calls, finishReason: { unified: "tool-calls", raw: undefined }, usage, warnings: [] },
    {
      content: [{ type: "text", text: "Seen." }],
      finishReason: { unified: "stop", raw: undefined },
      usage,
      warnings: [],
    },
  ]
  const model = new MockLanguageModelV4({ doGenerate: answers as never })
  const { text } = await generateText({
    model,
    prompt: "go",
    tools: await toAiTools(engine.tackle),
    stopWhen: isStepCount(2),
  })
  expect(text).toBe("Seen.")
  const results = model.doGenerateCalls[1]?.prompt.find(({ role }) => role === "tool")
  expect(results?.content).toMatchObject([
    {
      toolName: "shot",
      output: {
        type: "content",
        value: [
          { type: "text", text: "Here it is." },
          { type: "file", mediaType: "image/png", data: { type: "data", data: pixel } },
          { type: "text", text: "[File: /tmp/a.zip (application/zip)]" },
        ],
      },
    },
    { toolName: "plain", output: { type: "text", value: "Only text." } },
  ])
})
