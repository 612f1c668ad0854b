import type { LanguageModelV4CallOptions, LanguageModelV4Prompt } from "@ai-sdk/provider"
import { errorMessage } from "../util/errors.ts"
import { isRecord, parseJson } from "../util/json.ts"
import type { LanguageModel } from "./model.ts"
import { toolRefusal } from "./provider-error.ts"

/** What a server has to do for tools to work natively. */
export interface ToolFinding {
  name: string
  /** Undefined: it could not be tried, since an earlier step failed. */
  holds: boolean | undefined
  /** What was seen. */
  detail: string
}

/** What became of one step. */
type Outcome = Omit<ToolFinding, "name">

/**
 * Tries a live server with four small requests: takes `tools`, returns `tool_calls` with arguments that fit, says so in its
 * finish reason, takes `role: "tool"` and answers from what stands there, streams arguments in increments, calls several
 * tools at once. `model` has to be without a tool policy.
 * A model may also fail to call where its server could; the details say what was seen. Rejects where the server
 * cannot be asked at all: with any error of the first request that is no refusal of tools.
 */
export async function checkTools(model: LanguageModel, signal: AbortSignal): Promise<ToolFinding[]> {
  const ask = (prompt: LanguageModelV4Prompt): LanguageModelV4CallOptions => ({
    prompt,
    tools: [weather],
    abortSignal: signal,
  })
  const first = await firstAnswer(model, ask(question("What is the weather in Paris? Call the tool.")))
  if (typeof first === "string") {
    const untried = names.slice(1).map((name) => ({ name, holds: undefined, detail: "not tried" }))
    return [{ name: names[0], holds: false, detail: first }, ...untried]
  }
  const call = first.content.find((part) => part.type === "tool-call")
  const { unified, raw } = first.finishReason
  const outcomes: Outcome[] = [
    { holds: true, detail: "no error" },
    { holds: call !== undefined, detail: call ? `${call.toolName} ${call.input}` : "an answer in words" },
    call === undefined
      ? { holds: undefined, detail: "no call to finish with" }
      : { holds: unified === "tool-calls", detail: raw ?? unified },
    call === undefined ? { holds: undefined, detail: "no call to look at" } : fits(call.input),
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
  "arguments are JSON that fits",
  "accepts role tool",
  "uses the result",
  "streams arguments in increments",
  "several calls at once",
] as const

type Ask = (prompt: LanguageModelV4Prompt) => LanguageModelV4CallOptions

const weather = {
  type: "function" as const,
  name: "weather",
  description: "The weather of a city today.",
  inputSchema: {
    type: "object" as const,
    properties: { city: { type: "string" as const }, country: { type: "string" as const } },
    required: ["city", "country"],
  },
}

function question(text: string): LanguageModelV4Prompt {
  return [{ role: "user", content: [{ type: "text", text }] }]
}

/** The answer, or what the server said when it refused tools. */
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
  if (!parsed.ok) return { holds: false, detail: `no JSON: ${parsed.error}` }
  const given = isRecord(parsed.value) ? parsed.value : {}
  const wrong = weather.inputSchema.required.filter((name) => typeof given[name] !== "string")
  if (wrong.length > 0) return { holds: false, detail: `without ${wrong.join(" and ")}` }
  return { holds: true, detail: Object.keys(given).join(", ") }
}

/** Whether it takes the message, and whether it reads it. */
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
    { holds: used, detail: used ? "it is in the answer" : "the answer does not speak of it" },
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
  const text = "Call the tool twice in this answer: for the weather in Paris and for that in Rome."
  const { content } = await model.doGenerate(ask(question(text)))
  const count = content.filter((part) => part.type === "tool-call").length
  return { holds: count > 1, detail: `${count} of 2` }
}

/** An error in a later step is what was found out, unless it is our own end; what rests on it was not tried. */
async function settled(
  signal: AbortSignal,
  count: number,
  step: () => Promise<Outcome[]>,
): Promise<Outcome[]> {
  try {
    return await step()
  } catch (error) {
    signal.throwIfAborted()
    const untried: Outcome = { holds: undefined, detail: "not tried" }
    return [{ holds: false, detail: errorMessage(error) }, ...Array<Outcome>(count - 1).fill(untried)]
  }
}
