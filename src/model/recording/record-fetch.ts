import { errorMessage, systemCode } from "../../util/errors.ts"
import { parseJson } from "../../util/json.ts"
import type { RequestLine, ResponseLine } from "./format.ts"

/** Wraps a `fetch` to record each request, and each answer when it ends. Does not delay chunks. */
export function recordFetch(
  ask: typeof fetch,
  write: (line: RequestLine | ResponseLine) => void,
): typeof fetch {
  let count = 0
  return async (input, init) => {
    count += 1
    const number = count
    write({ type: "request", number, ...requestOf(input, init) })
    try {
      const response = await ask(input, init)
      return watched(response, (line) => write({ type: "response", number, ...line }))
    } catch (error) {
      write({ type: "response", number, parts: [], error: describe(error) })
      throw error
    }
  }
}

/** Returns the properties of a request that are recorded. */
export function requestOf(
  input: Parameters<typeof fetch>[0],
  init: RequestInit | undefined,
): Pick<RequestLine, "method" | "url" | "body"> {
  const { origin, pathname } = new URL(input instanceof Request ? input.url : input)
  const text = typeof init?.body === "string" ? init.body : ""
  const parsed = parseJson(text)
  return { method: init?.method ?? "GET", url: origin + pathname, body: parsed.ok ? parsed.value : text }
}

type Answer = Omit<ResponseLine, "type" | "number">

function watched(response: Response, end: (answer: Answer) => void): Response {
  const { status, statusText } = response
  const contentType = response.headers.get("content-type") ?? undefined
  const chunks: Uint8Array[] = []
  let ended = false
  const finish = (error?: Answer["error"]) => {
    if (ended) return
    ended = true
    const parts = partsOf(Buffer.concat(chunks).toString("utf8"), contentType)
    end({ status, parts, contentType, error })
  }
  if (response.body === null) {
    finish()
    return response
  }
  const reader = response.body.getReader()
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { done, value } = await reader.read()
          if (value) {
            chunks.push(value)
            controller.enqueue(value)
          }
          if (!done) return
          finish()
          controller.close()
        } catch (error) {
          finish(describe(error))
          controller.error(error)
        }
      },
      async cancel(reason) {
        finish({ message: "the request was canceled" })
        await reader.cancel(reason)
      },
    },
    { highWaterMark: 0 },
  )
  const headers = Object.fromEntries(response.headers)
  // The body is already decompressed.
  delete headers["content-encoding"]
  delete headers["content-length"]
  return new Response(body, { status, statusText, headers })
}

function partsOf(text: string, contentType: string | undefined): string[] {
  const isStream = contentType?.startsWith("text/event-stream")
  return (isStream ? text.split(/(?<=\r?\n\r?\n)/) : [text]).filter((part) => part !== "")
}

function describe(error: unknown): NonNullable<Answer["error"]> {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error
  const code = systemCode(cause)
  return { message: errorMessage(cause), code }
}
