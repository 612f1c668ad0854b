import * as z from "zod"
import { orAbort, TimeoutError } from "../../util/abort.ts"
import { errorMessage } from "../../util/errors.ts"
import { SearchError } from "./search-error.ts"

/** How long a search may take, in milliseconds. */
const timeoutMs = 25_000

/** An answer above so many bytes is none that could be used. */
const maxBytes = 5 * 1024 * 1024

/** One request to a back end. With `body` it is a POST of JSON. */
export interface BackendRequest {
  /** For messages. */
  name: string
  url: string
  headers?: Record<string, string>
  body?: unknown
  signal: AbortSignal
}

/**
 * The text of the answer. Redirects are not followed: a key must not go where nobody sent it. Throws `SearchError` for
 * any answer but success and for one above 5 MB, `TimeoutError` after 25 s, and the signal's reason.
 */
export async function requestText(request: BackendRequest): Promise<string> {
  const { name, url, headers, body, signal } = request
  const timeout = new AbortController()
  const late = new TimeoutError(`The ${name} search did not respond within ${timeoutMs / 1000} s.`, timeoutMs)
  const timer = setTimeout(() => timeout.abort(late), timeoutMs)
  const either = AbortSignal.any([signal, timeout.signal])
  try {
    const response = await fetch(url, {
      redirect: "error",
      signal: either,
      headers: { accept: "application/json", ...(body === undefined ? {} : jsonType), ...headers },
      ...(body === undefined ? {} : { method: "POST", body: JSON.stringify(body) }),
    })
    const text = await readBounded(response, name)
    if (response.ok) return text
    throw new SearchError(statusText(name, response.status, text))
  } catch (error) {
    if (either.aborted) await orAbort(Promise.resolve(), either)
    if (error instanceof SearchError) throw error
    const cause = error instanceof Error && error.cause !== undefined ? error.cause : error
    throw new SearchError(`Cannot reach the ${name} search: ${errorMessage(cause)}.`, error)
  } finally {
    clearTimeout(timer)
  }
}

/** The answer as JSON of the given shape. Throws as {@link requestText}, and `SearchError` for any other shape. */
export async function requestJson<S extends z.ZodType>(
  request: BackendRequest,
  shape: S,
): Promise<z.output<S>> {
  return parseAnswer(await requestText(request), shape, request.name)
}

/** Throws `SearchError` for a text that is not JSON of the given shape. */
export function parseAnswer<S extends z.ZodType>(text: string, shape: S, name: string): z.output<S> {
  try {
    return shape.parse(JSON.parse(text))
  } catch (error) {
    const what = error instanceof z.ZodError ? z.prettifyError(error) : errorMessage(error)
    throw new SearchError(`The ${name} search returned an unexpected response: ${what}`, error)
  }
}

const jsonType = { "content-type": "application/json" }

async function readBounded(response: Response, name: string): Promise<string> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  // Leaving the loop early ends the response.
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length
    if (bytes > maxBytes) throw new SearchError(`The ${name} search returned more than ${maxBytes} bytes.`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString("utf8")
}

function statusText(name: string, status: number, text: string): string {
  const what = `The ${name} search returned HTTP ${status}`
  if (status === 401 || status === 403)
    return `${what}: the key is missing or invalid. Continue without it, and say so.`
  if (status === 402 || status === 429) return `${what}: too many searches. Wait, or continue without it.`
  return `${what}: ${text.slice(0, 300).trim() || "no response body"}`
}
