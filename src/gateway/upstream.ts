import type { IncomingHttpHeaders } from "node:http"
import { withBody } from "../model/answer-guard.ts"
import { watchStream } from "../model/stream-watch.ts"
import { TimeoutError } from "../util/abort.ts"
import { isRecord, parseJson } from "../util/json.ts"
import { sentKeys } from "./guard.ts"

/** Options for the upstream. */
interface UpstreamOptions {
  /** Base URL, including `/v1` and without a trailing slash. */
  baseURL: string
  /** Key that replaces the client's key. */
  key: string | undefined
  /** Idle timeout in milliseconds, before and within an answer. Comments and empty events do not reset it. */
  silenceMs: number
  fetch: typeof fetch
}

/** The server behind the gateway. */
export interface Upstream {
  readonly baseURL: string
  /**
   * Returns the headers for the upstream, taken from a client's request. With `keepKey`, includes the client's key
   * unless {@link UpstreamOptions.key} replaces it.
   */
  headers(from: IncomingHttpHeaders, keepKey: boolean): Record<string, string>
  /** Returns a `fetch` that fails if the signal aborts or the idle timeout expires, even while the body is read. */
  fetchUntil(signal: AbortSignal): typeof fetch
}

/** Creates the client for an upstream. Makes no request. */
export function createUpstream({ baseURL, key, silenceMs, fetch: ask }: UpstreamOptions): Upstream {
  return {
    baseURL,
    headers(from, keepKey) {
      const kept = passedOn.flatMap((name) => {
        const value = from[name]
        return typeof value === "string" ? [[name, value]] : []
      })
      const authorization = key === undefined ? (keepKey ? sentKeys(from)[0] : undefined) : `Bearer ${key}`
      return { ...Object.fromEntries(kept), ...(authorization !== undefined && { authorization }) }
    },
    fetchUntil: (signal) => async (input, init) => {
      const watch = watchStream(signal, silenceMs, silence)
      try {
        const response = await ask(input, { ...init, signal: watch.signal })
        return withBody(response, watchedBody(response, watch))
      } catch (error) {
        watch.end()
        throw watch.stopped ?? error
      }
    },
  }
}

/**
 * Headers that identify the client and its account. Apart from the key, no other header is forwarded to the upstream.
 */
const passedOn = ["user-agent", "openai-organization", "openai-project", "http-referer", "x-title"]

function silence(limitMs: number): TimeoutError {
  return new TimeoutError(
    `The upstream sent no content for ${limitMs / 1_000} s. If it needs more time, increase --timeout.`,
    limitMs,
  )
}

/** Returns the body with an idle timeout. Comments and empty events of a stream do not reset the timeout. */
function watchedBody(
  { body, headers }: Response,
  watch: ReturnType<typeof watchStream>,
): ReadableStream<Uint8Array> {
  const reader = (body ?? new Blob([]).stream()).getReader()
  const isStream = /^text\/event-stream\b/i.test(headers.get("content-type") ?? "")
  const showsProgress = isStream ? createProgressReader() : () => true
  watch.answered()
  let isWaiting = false
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        if (!isWaiting) watch.wait()
        try {
          const { done, value } = await reader.read()
          isWaiting = !done && !showsProgress(value)
          if (!isWaiting) watch.answered()
          if (!done) return controller.enqueue(value)
          watch.end()
          controller.close()
        } catch (error) {
          watch.end()
          controller.error(watch.stopped ?? error)
        }
      },
      async cancel(reason) {
        watch.end()
        await reader.cancel(reason)
      },
    },
    { highWaterMark: 0 },
  )
}

/**
 * Creates a function that receives the next bytes of a stream and returns true if they complete an event with content.
 */
function createProgressReader(): (bytes: Uint8Array) => boolean {
  const decoder = new TextDecoder()
  let open = ""
  return (bytes) => {
    const lines = (open + decoder.decode(bytes, { stream: true })).split(/\r\n|\n|\r/)
    open = lines.pop() ?? ""
    return lines.some((line) => line.startsWith("data:") && !isEmptyEvent(line.slice(5)))
  }
}

/** Returns true for a ping and for an event whose deltas are all empty. */
function isEmptyEvent(data: string): boolean {
  const parsed = parseJson(data)
  if (!parsed.ok || !isRecord(parsed.value)) return false
  const { type, delta, choices, usage } = parsed.value
  if (type === "ping" || type === "keepalive") return true
  if (delta !== undefined) return !hasText(delta)
  if (!Array.isArray(choices) || choices.length === 0 || usage) return false
  return choices.every((choice) => isRecord(choice) && !choice.finish_reason && !hasText(choice.delta))
}

/** Returns true if a delta contains text, apart from fixed fields such as the role. */
function hasText(delta: unknown): boolean {
  if (!isRecord(delta) && !Array.isArray(delta)) return typeof delta === "string" && delta !== ""
  return Object.entries(delta).some(
    ([key, value]) => !["role", "type", "index"].includes(key) && hasText(value),
  )
}
