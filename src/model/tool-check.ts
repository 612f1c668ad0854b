import type { LanguageModelV4CallOptions, LanguageModelV4Prompt } from "@ai-sdk/provider"
import { errorMessage } from "../util/errors.ts"
import { isRecord, parseJson } from "../util/json.ts"
import type { LanguageModel } from "./model.ts"
import { toolRefusal } from "./provider-error.ts"

/** The test result for one capability that native tool calling needs. */
export interface ToolFinding {
  name: string
  /** Whether the server has the capability. Undefined if it was not tested because an earlier test failed. */
  holds: boolean | undefined
  /** Observed behavior or error, in a few words. */
  detail: string
}

/** The result of one step. */
type Outcome = Omit<ToolFinding, "name">

/**
 * Tests a live server with up to four small requests. Checks that it accepts `tools`, returns `tool_calls` with valid
 * arguments and the right finish reason, accepts `role: "tool"` and uses the result, streams arguments, and makes
 * several calls in one answer. `model` must not have a tool policy. A capability can also appear to be missing because
 * the model chose not to call a tool. Rejects if the signal aborts, or if the first request fails for any reason except
 * that the server rejects tools.
 */
export async function checkTools(model: LanguageModel, signal: AbortSignal): Promise<ToolFinding[]> {
  const ask = (prompt: LanguageModelV4Prompt): LanguageModelV4CallOptions => ({
    prompt,
    tools: [weather],
    abortSignal: signal,
  })
  const first = await firstAnswer(model, ask(question("What is the weather in Paris? Call the tool.")))
  if (typeof first === "string") {
    const untried = names.slice(1).map((name) => ({ name, holds: undefined, detail: "not tested" }))
    return [{ name: names[0], holds: false, detail: first }, ...untried]
  }
  const call = first.content.find((part) => part.type === "tool-call")
  const { unified, raw } = first.finishReason
  const outcomes: Outcome[] = [
    { holds: true, detail: "no error" },
    {
      holds: call !== undefined,
      detail: call ? `${call.toolName} ${call.input}` : "an answer without a call",
    },
    call === undefined
      ? { holds: undefined, detail: "no call, so not tested" }
      : { holds: unified === "tool-calls", detail: raw ?? unified },
    call === undefined ? { holds: undefined, detail: "no call, so not tested" } : fits(call.input),
    ...(await settled(signal, 2, () => takesResults(model, ask))),
    ...(await settled(signal, 1, async () => [await streams(model, ask)])),
    ...(await settled(signal, 1, async () => [await callsSeveral(model, ask)])),
  ]
  return names.map((name, index) => ({ name, ...(outcomes[index] ?? { holds: undefined, detail: "" }) }))
}

const names = [
  "accepts tools",
  "returns tool_calls",
  "finish reason tool_calls",
  "arguments match the schema",
  "accepts role tool",
  "uses the result",
  "streams arguments in increments",
  "several calls at once",
] as const

type Ask = (prompt: LanguageModelV4Prompt) => LanguageModelV4CallOptions

const weather = {
  type: "function" as const,
  name: "weather",
  description: "Today's weather in a city.",
  inputSchema: {
    type: "object" as const,
    properties: { city: { type: "string" as const }, country: { type: "string" as const } },
    required: ["city", "country"],
  },
}

function question(text: string): LanguageModelV4Prompt {
  return [{ role: "user", content: [{ type: "text", text }] }]
}

/** Returns the answer, or the server's message if the server rejects tools. */
async function firstAnswer(model: LanguageModel, call: LanguageModelV4CallOptions) {
  try {
    return await model.doGenerate(call)
  } catch (error) {
    const reason = toolRefusal(error)
    if (reason === undefined) throw error
    return reason
  }
}

function fits(input: string): Outcome {
  const parsed = parseJson(input)
  if (!parsed.ok) return { holds: false, detail: `not valid JSON: ${parsed.error}` }
  const given = isRecord(parsed.value) ? parsed.value : {}
  const wrong = weather.inputSchema.required.filter((name) => typeof given[name] !== "string")
  if (wrong.length > 0) return { holds: false, detail: `missing: ${wrong.join(", ")}` }
  return { holds: true, detail: Object.keys(given).join(", ") }
}

/** Tests that the server accepts a result and that the model uses it. */
async function takesResults(model: LanguageModel, ask: Ask): Promise<Outcome[]> {
  const named = { toolCallId: "call_1", toolName: weather.name }
  const { content } = await model.doGenerate(
    ask([
      ...question("What is the weather in Paris?"),
      {
        role: "assistant",
        content: [{ type: "tool-call", ...named, input: { city: "Paris", country: "France" } }],
      },
      {
        role: "tool",
        content: [{ type: "tool-result", ...named, output: { type: "text", value: "31 degrees" } }],
      },
    ]),
  )
  const text = content.map((part) => (part.type === "text" ? part.text : "")).join("")
  const used = text.includes("31")
  return [
    { holds: true, detail: "no error" },
    { holds: used, detail: used ? "the answer contains it" : "the answer does not contain it" },
  ]
}

async function streams(model: LanguageModel, ask: Ask): Promise<Outcome> {
  const { stream } = await model.doStream(ask(question("What is the weather in Rome? Call the tool.")))
  let pieces = 0
  for await (const part of stream) {
    if (part.type === "error") throw part.error
    if (part.type === "tool-input-delta") pieces += 1
  }
  if (pieces === 0) return { holds: false, detail: "no call in the stream" }
  return { holds: pieces > 1, detail: pieces === 1 ? "in one piece" : `in ${pieces} pieces` }
}

async function callsSeveral(model: LanguageModel, ask: Ask): Promise<Outcome> {
  const text =
    "Call the tool twice in this answer: once for the weather in Paris, and once for the weather in Rome."
  const { content } = await model.doGenerate(ask(question(text)))
  const count = content.filter((part) => part.type === "tool-call").length
  return { holds: count > 1, detail: `${count} of 2` }
}

/**
 * Runs a step that returns `count` outcomes. If the step fails, the first outcome is the error, and the others are not
 * tested. Throws if the signal is aborted.
 */
async function settled(
  signal: AbortSignal,
  count: number,
  step: () => Promise<Outcome[]>,
): Promise<Outcome[]> {
  try {
    return await step()
  } catch (error) {
    signal.throwIfAborted()
    const untried: Outcome = { holds: undefined, detail: "not tested" }
    return [{ holds: false, detail: errorMessage(error) }, ...Array<Outcome>(count - 1).fill(untried)]
  }
}
