// Runs only the provider's `doStream`, to measure what parsing a stream costs without an engine. The first turn
// executes the streamed `write` call, and the next turn ends the run.
//
//   node bench/do-stream.mjs <base URL> <prompt>

import { writeFile } from "node:fs/promises"
import { createOpenAICompatible } from "@ai-sdk/openai-compatible"

const [url, text] = process.argv.slice(2)
const model = createOpenAICompatible({ name: "bench", baseURL: url, apiKey: "k" }).chatModel("m")
const inputSchema = {
  type: "object",
  properties: { filePath: { type: "string" }, content: { type: "string" } },
  required: ["filePath", "content"],
}
const tools = [{ type: "function", name: "write", inputSchema }]
const prompt = [{ role: "user", content: [{ type: "text", text }] }]

for (;;) {
  const call = await firstCall()
  if (!call) break
  const { toolCallId, toolName } = call
  const input = JSON.parse(call.input)
  await writeFile(input.filePath, input.content)
  const output = { type: "text", value: "Wrote the file." }
  prompt.push(
    { role: "assistant", content: [{ type: "tool-call", toolCallId, toolName, input }] },
    { role: "tool", content: [{ type: "tool-result", toolCallId, toolName, output }] },
  )
}

async function firstCall() {
  const { stream } = await model.doStream({ prompt, tools })
  let call
  for await (const part of stream) {
    if (part.type === "error") throw part.error
    if (part.type === "tool-call") call ??= part
  }
  return call
}
