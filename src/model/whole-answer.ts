import { isRecord, parseJson } from "../util/json.ts"

/**
 * A `fetch` that gets a stream where it asks for one: a server of the chat completions format that answers with one JSON
 * body all the same reads as a stream of one event. Everything else is left as it is.
 */
export function alwaysStreamed(ask: typeof fetch): typeof fetch {
  return async (input, init) => {
    const response = await ask(input, init)
    const type = response.headers.get("content-type") ?? ""
    if (!response.ok || !/^application\/json\b/i.test(type) || !asksForStream(init)) return response
    const { ok, status, statusText, headers, url } = response
    const body = new Blob([asEvents(await response.text())]).stream()
    return { ok, status, statusText, headers, url, body } as Response
  }
}

function asksForStream(init: RequestInit | undefined): boolean {
  if (typeof init?.body !== "string") return false
  const { value } = { value: undefined, ...parseJson(init.body) }
  return isRecord(value) && value.stream === true
}

/** What is no completion stays what it is: the package then says that it cannot read it. */
function asEvents(text: string): string {
  const { value } = { value: undefined, ...parseJson(text) }
  if (!isRecord(value) || !(Array.isArray(value.choices) || "error" in value)) return text
  const choices = Array.isArray(value.choices) ? { choices: value.choices.map(asDelta) } : {}
  return `data: ${JSON.stringify({ ...value, ...choices })}\n\ndata: [DONE]\n\n`
}

function asDelta(choice: unknown): unknown {
  if (!isRecord(choice) || !isRecord(choice.message)) return choice
  const { message, ...rest } = choice
  const calls = Array.isArray(message.tool_calls) ? { tool_calls: message.tool_calls.map(asPiece) } : {}
  return { ...rest, delta: { ...message, ...calls } }
}

/** Pieces of a stream are told apart by their place; and some servers give the arguments as an object. */
function asPiece(call: unknown, index: number): unknown {
  if (!isRecord(call) || !isRecord(call.function)) return call
  const { arguments: given } = call.function
  const text = typeof given === "string" ? given : JSON.stringify(given ?? {})
  return { ...call, index, function: { ...call.function, arguments: text } }
}
