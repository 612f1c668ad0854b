import type { IncomingHttpHeaders } from "node:http"
import { text } from "node:stream/consumers"
import { watchStream } from "../model/stream-watch.ts"
import { TimeoutError } from "../util/abort.ts"
import { sentKeys } from "./guard.ts"

/** Options of the upstream. */
interface UpstreamOptions {
  /** Base URL, including `/v1` and without a trailing slash. */
  baseURL: string
  /** Key that replaces the client's key. */
  key: string | undefined
  /** Maximum silence in milliseconds, before and within an answer. */
  silenceMs: number
  fetch: typeof fetch
}

/** Gives access to the server behind the gateway. */
export interface Upstream {
  readonly baseURL: string
  /**
   * Returns the headers for the upstream, taken from a client's request. With `keepKey`, includes the client's key
   * unless `key` replaces it.
   */
  headers(from: IncomingHttpHeaders, keepKey: boolean): Record<string, string>
  /**
   * Returns a `fetch` that fails when the signal fires or the upstream is silent for too long, even within the body.
   */
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
        return withBody(response, watchedBody(response.body, watch))
      } catch (error) {
        watch.end()
        throw watch.stopped ?? error
      }
    },
  }
}

/** Headers about the client and its account. Other headers are not passed on. */
const passedOn = ["user-agent", "openai-organization", "openai-project", "http-referer", "x-title"]

function silence(limitMs: number): TimeoutError {
  return new TimeoutError(`The upstream was silent for ${limitMs / 1_000} s (--timeout).`, limitMs)
}

function watchedBody(
  body: ReadableStream<Uint8Array> | null,
  watch: ReturnType<typeof watchStream>,
): ReadableStream<Uint8Array> {
  const reader = (body ?? new Blob([]).stream()).getReader()
  watch.answered()
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        watch.wait()
        try {
          const { done, value } = await reader.read()
          watch.answered()
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

/** Returns a response with another body. It has only the properties that the gateway and the provider package read. */
function withBody(
  { url, ok, status, statusText, headers }: Response,
  body: ReadableStream<Uint8Array>,
): Response {
  const response = {
    url,
    ok,
    status,
    statusText,
    headers,
    body,
    text: () => text(body),
    json: async () => JSON.parse(await text(body)) as unknown,
  }
  return response as unknown as Response
}
