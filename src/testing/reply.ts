/** A tool call as the scripted model makes it. */
export interface ScriptedCall {
  /** Default: `call_<request>_<position>`, unique within one server. */
  id?: string
  name: string
  /** An object is sent as its JSON; a string goes out as it stands, so that broken JSON can be tried. */
  arguments: Record<string, unknown> | string
}

/** Tokens as a provider counts them. */
export interface ScriptedUsage {
  /** All tokens of the prompt, the cached ones among them. */
  input: number
  /** All tokens of the answer, the reasoning among them. */
  output: number
  cached?: number
  reasoning?: number
}

/**
 * How an answer goes wrong on the wire. On an answer that is not streamed, "event" reads as "body".
 * - `hang`: the request is taken and never answered.
 * - `hang-mid`: half of the events, then silence on an open connection.
 * - `cut`: half of the events, then the connection closes without the end of the body.
 * - `reset`: the connection is reset before the first byte of an answer.
 * - `garbage`: an event in the middle is no JSON; the others are whole.
 * - `half-event`: the body ends tidily in the middle of an event.
 * - `no-finish`: the body ends tidily before the finish reason, the usage and `[DONE]`.
 * - `html`: a page of some proxy, with status 200 unless `status` says otherwise.
 */
export type Fault = "hang" | "hang-mid" | "cut" | "reset" | "garbage" | "half-event" | "no-finish" | "html"

/** One answer of the scripted model. All fields may be combined; an empty reply is an empty text. */
export interface Reply {
  text?: string
  reasoning?: string
  calls?: ScriptedCall[]
  /** Default: `tool_calls` where there are calls, else `stop`. */
  finish?: string
  /** Default: a quarter of the bytes sent and received. */
  usage?: ScriptedUsage
  /** Characters of text, reasoning or arguments in one event of a stream. Default: each whole. */
  pieceSize?: number
  /** Answers with one JSON body though a stream was asked for, as some servers do. */
  whole?: boolean
  /** Wait before the first byte of the answer. */
  delayMs?: number
  /** Wait between two events of a stream. Without it all events go out in one write. */
  pieceDelayMs?: number
  /** Default 200. From 400 on the answer is an error with `text` as its message, unless `body` is given. */
  status?: number
  /** Added to the usual ones, or in their place. */
  headers?: Record<string, string>
  /** Sent as it stands, in place of everything above but status, headers and delay. */
  body?: string
  fault?: Fault
}

/** The arguments of a call as the text that goes over the wire. */
export function argumentsText(call: ScriptedCall): string {
  return typeof call.arguments === "string" ? call.arguments : JSON.stringify(call.arguments)
}

/** The call's own id, or the one that its place gives it. */
export function callID(call: ScriptedCall, request: number, position: number): string {
  return call.id ?? `call_${request}_${position}`
}

/** Cuts a text into pieces of `size` characters; a pair of surrogates stays together, so a piece may have one more. */
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

/** The usage of a reply to a request of so many bytes: as scripted, else a quarter of the bytes. */
export function usageOf(reply: Reply, requestBytes: number): ScriptedUsage {
  if (reply.usage) return reply.usage
  const said = (reply.text ?? "") + (reply.reasoning ?? "") + (reply.calls ?? []).map(argumentsText).join("")
  return { input: Math.ceil(requestBytes / 4), output: Math.ceil(said.length / 4) }
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff
}
