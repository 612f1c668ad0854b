/** A tool call of the scripted model. */
export interface ScriptedCall {
  /** Default: `call_<request>_<position>`, unique within one server. */
  id?: string
  name: string
  /** An object is sent as JSON. A string is sent unchanged, to test invalid JSON. */
  arguments: Record<string, unknown> | string
}

/** Tokens as counted by a provider. */
export interface ScriptedUsage {
  /** All tokens of the prompt, including cached ones. */
  input: number
  /** All tokens of the answer, including reasoning. */
  output: number
  cached?: number
  reasoning?: number
}

/**
 * A defect of an answer on the wire. For an answer that is not streamed, "event" means the body.
 * - `hang`: the request is accepted and never answered.
 * - `hang-mid`: half of the events, then silence on an open connection.
 * - `cut`: half of the events, then the connection closes before the end of the body.
 * - `reset`: the connection is reset before the first byte.
 * - `garbage`: one event in the middle is not JSON.
 * - `half-event`: the body ends in the middle of an event.
 * - `no-finish`: the body ends before the finish reason, the usage and `[DONE]`.
 * - `html`: an HTML page, as from a proxy, with status 200 unless `status` is set.
 */
export type Fault = "hang" | "hang-mid" | "cut" | "reset" | "garbage" | "half-event" | "no-finish" | "html"

/** One reply of the scripted model. Fields can be combined. An empty reply is an empty text. */
export interface Reply {
  text?: string
  reasoning?: string
  calls?: ScriptedCall[]
  /** Default: `tool_calls` with calls, otherwise `stop`. */
  finish?: string
  /** Default: a quarter of the bytes sent and received. */
  usage?: ScriptedUsage
  /** Characters of text, reasoning or arguments per streamed event. Default: all. */
  pieceSize?: number
  /** Answers with one JSON body even if a stream was requested, as some servers do. */
  whole?: boolean
  /** Delay before the first byte. */
  delayMs?: number
  /** Delay between two streamed events. Default: all events in one write. */
  pieceDelayMs?: number
  /** Default 200. From 400, the answer is an error with `text` as its message, unless `body` is set. */
  status?: number
  /** Added to the default headers, or replaces them. */
  headers?: Record<string, string>
  /** Sent unchanged instead of the fields above, except status, headers and delay. */
  body?: string
  fault?: Fault
}

/** Returns the arguments of a call as sent. */
export function argumentsText(call: ScriptedCall): string {
  return typeof call.arguments === "string" ? call.arguments : JSON.stringify(call.arguments)
}

/** Returns the id of a call, or its default id. */
export function callID(call: ScriptedCall, request: number, position: number): string {
  return call.id ?? `call_${request}_${position}`
}

/** Splits a text into pieces of `size` characters. Surrogate pairs stay together, so a piece may have one more. */
export function pieces(text: string, size = text.length): string[] {
  if (text === "") return []
  if (size < 1) throw new RangeError(`pieceSize must be at least 1, not ${size}.`)
  const cut: string[] = []
  for (let start = 0; start < text.length; ) {
    let end = start + size
    if (isHighSurrogate(text.charCodeAt(end - 1))) end++
    cut.push(text.slice(start, end))
    start = end
  }
  return cut
}

/** Returns the usage of a reply: as scripted, or a quarter of the bytes. */
export function usageOf(reply: Reply, requestBytes: number): ScriptedUsage {
  if (reply.usage) return reply.usage
  const said = (reply.text ?? "") + (reply.reasoning ?? "") + (reply.calls ?? []).map(argumentsText).join("")
  return { input: Math.ceil(requestBytes / 4), output: Math.ceil(said.length / 4) }
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff
}
