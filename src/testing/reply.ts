/** A tool call by the scripted model. */
export interface ScriptedCall {
  /**
   * Call id. Default: `call_<request>_<position>`, which is unique within one server. The Messages API adds the prefix
   * `toolu_`.
   */
  id?: string
  name: string
  /** The tool's namespace. Only the Responses API has namespaces. */
  namespace?: string
  /**
   * Arguments for the call. An object is sent as JSON. A string is sent unchanged, for example to test invalid JSON.
   * With the Messages API, a string must be valid JSON.
   */
  arguments: Record<string, unknown> | string
}

/** Token counts that a provider reports. */
export interface ScriptedUsage {
  /** Number of tokens in the prompt, including cached tokens. */
  input: number
  /** Number of tokens in the answer, including reasoning. */
  output: number
  cached?: number
  reasoning?: number
}

/**
 * A defect in an answer on the wire. The body of an answer that is not streamed counts as two events, one for each
 * half.
 * - `hang`: the request is accepted and never answered.
 * - `hang-mid`: half of the events are sent, and the connection stays open.
 * - `cut`: half of the events are sent, and the connection closes before the end of the body.
 * - `reset`: the connection is reset before the first byte.
 * - `garbage`: one event in the middle is not JSON.
 * - `half-event`: the body ends in the middle of an event.
 * - `no-finish`: the body ends before the finish reason, the usage and `[DONE]`.
 * - `html`: the answer is an HTML page, as from a proxy, with status 200 unless `status` is set.
 */
export type Fault = "hang" | "hang-mid" | "cut" | "reset" | "garbage" | "half-event" | "no-finish" | "html"

/** One reply from the scripted model. Fields can be combined. A reply without fields is empty text. */
export interface Reply {
  text?: string
  reasoning?: string
  calls?: ScriptedCall[]
  /**
   * Finish reason. Default: `tool_calls` if the reply has calls, otherwise `stop`. `length` is sent
   * in the words of each API. The Responses API sends other reasons as the reason of an incomplete answer.
   */
  finish?: string
  /**
   * Token counts to report. Default: one input token per four bytes of the request, and one output token per four
   * characters of the reply.
   */
  usage?: ScriptedUsage
  /** Number of characters of text, reasoning or arguments per streamed event. Default: all characters in one event. */
  pieceSize?: number
  /** Whether to answer with one JSON body even if a stream was requested, as some servers do. */
  whole?: boolean
  /** Delay in ms before the first byte. */
  delayMs?: number
  /** Delay in ms between two streamed events. Default: all events are sent in one write. */
  pieceDelayMs?: number
  /**
   * HTTP status. Default: 200. For 400 and above, the answer is an error with `text` as its message, unless `body` is
   * set.
   */
  status?: number
  /** Headers to add to the default headers. They replace default headers with the same name. */
  headers?: Record<string, string>
  /**
   * Body that is sent unchanged. If set, other fields are ignored, except `status`, `headers`, `delayMs` and the
   * defect.
   */
  body?: string
  fault?: Fault
}

/** Returns the arguments of a call as they are sent. */
export function argumentsText(call: ScriptedCall): string {
  return typeof call.arguments === "string" ? call.arguments : JSON.stringify(call.arguments)
}

/** Returns the scripted id of a call, or its default id. */
export function callID(call: ScriptedCall, request: number, position: number): string {
  return call.id ?? `call_${request}_${position}`
}

/**
 * Splits text into pieces of `size` characters. Does not split surrogate pairs, so a piece may be one character longer.
 * Throws `RangeError` if `size` is less than 1.
 */
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

/** Returns the scripted usage of a reply, or the default of {@link Reply.usage}. */
export function usageOf(reply: Reply, requestBytes: number): ScriptedUsage {
  if (reply.usage) return reply.usage
  const said = (reply.text ?? "") + (reply.reasoning ?? "") + (reply.calls ?? []).map(argumentsText).join("")
  return { input: Math.ceil(requestBytes / 4), output: Math.ceil(said.length / 4) }
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff
}
