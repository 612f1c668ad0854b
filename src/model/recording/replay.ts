import type { ToolStateCompleted, ToolStateError } from "../../schema/tool-state.ts"
import { canonicalJson, isRecord } from "../../util/json.ts"
import { ProviderError } from "../errors.ts"
import type { Exchange, McpLine, Recording, ResponseLine } from "./format.ts"
import { requestOf } from "./record-fetch.ts"

/** Replays a recorded run without sending requests or executing tools. */
interface Replay {
  /**
   * Returns recorded answers. Rejects with `ProviderError` if a request differs from the recording or has no recorded
   * answer.
   */
  fetch: typeof fetch
  /** Returns the recorded result of a call, or an error state if the recording does not contain the call. */
  result(call: {
    tool: string
    input: Readonly<Record<string, unknown>>
  }): ToolStateCompleted | ToolStateError
  /** Returns the MCP tools that the next request offers. */
  offered(): McpLine["tools"]
  /**
   * Returns a description of the first difference, or of the first missing request if there is no other difference, or
   * undefined if the run matches the recording. Call this method after the run.
   */
  end(): string | undefined
}

/** Starts a replay. Concurrent requests, such as those of subagents, can arrive in any order. */
export function startReplay({ exchanges, tools, mcp }: Recording): Replay {
  const open = [...exchanges]
  const results = [...tools]
  let first: string | undefined

  function differs(text: string): string {
    first ??= text
    return text
  }

  function take(asked: ReturnType<typeof requestOf>): Exchange {
    const match = open.find((exchange) => differenceOf(exchange, asked) === undefined)
    const [next] = open
    if (match === undefined) {
      const text =
        next === undefined
          ? `Request ${exchanges.length + 1} is not in the recording: ${asked.method} ${asked.url}`
          : `Request ${next.number} differs: ${differenceOf(next, asked)}`
      throw new ProviderError(differs(text), { kind: "unknown", retryable: false })
    }
    open.splice(open.indexOf(match), 1)
    return match
  }

  return {
    async fetch(input, init) {
      init?.signal?.throwIfAborted()
      const { number, response } = take(requestOf(input, init))
      if (response) return answerOf(response)
      const text = differs(
        `Request ${number} has no answer in the recording, because the recorded run ended before the answer arrived.`,
      )
      throw new ProviderError(text, { kind: "unknown", retryable: false })
    },
    result({ tool, input }) {
      const wanted = canonicalJson(input)
      const place = results.findIndex(
        (line) => line.tool === tool && canonicalJson(line.state.input) === wanted,
      )
      const [found] = place < 0 ? [] : results.splice(place, 1)
      if (found) return found.state
      const error = differs(`The call ${tool} ${wanted} is not in the recording.`)
      const now = Date.now()
      return { status: "error", input: { ...input }, error, time: { start: now, end: now } }
    },
    offered() {
      const made = exchanges.length - open.length
      return mcp.findLast(({ after }) => after <= made)?.tools ?? []
    },
    end() {
      const [left] = open
      if (first === undefined && left !== undefined)
        differs(`Request ${left.number} was not made: ${left.method} ${left.url}`)
      return first
    },
  }
}

function differenceOf(
  { method, url, body }: Exchange,
  asked: ReturnType<typeof requestOf>,
): string | undefined {
  // Ignore the address of the server.
  const expected = { method, path: new URL(url).pathname }
  const got = { method: asked.method, path: new URL(asked.url).pathname }
  const difference = firstDifference(expected, got) ?? firstDifference(body, asked.body)
  return difference && describeDifference(difference)
}

function answerOf({ status, contentType, parts, error }: ResponseLine): Response {
  const failure =
    error && Object.assign(new Error(error.message), error.code === undefined ? {} : { code: error.code })
  if (status === undefined) throw new TypeError("fetch failed", { cause: failure })
  const left = parts.map((part) => new TextEncoder().encode(part))
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      const part = left.shift()
      if (part) controller.enqueue(part)
      else if (failure) controller.error(failure)
      else controller.close()
    },
  })
  const headers = {
    ...(contentType === undefined ? {} : { "content-type": contentType }),
    // The recorded run has already waited before this retry. The replay does not wait again.
    ...(status >= 400 ? { "retry-after-ms": "0" } : {}),
  }
  return new Response(body, { status, headers })
}

/** The first difference between two values. A side is `undefined` if its value is missing. */
interface Difference {
  /** Path such as `messages[3].content`. Empty for the whole value. */
  path: string
  expected: unknown
  got: unknown
}

/**
 * Returns the first difference between two JSON values, in the order of the expected keys. Ids that Tackle creates
 * differ in each run, so ids with the same prefix count as equal.
 */
export function firstDifference(expected: unknown, got: unknown, path = ""): Difference | undefined {
  if (Array.isArray(expected) && Array.isArray(got)) {
    const length = Math.max(expected.length, got.length)
    for (let index = 0; index < length; index += 1) {
      const inner = firstDifference(expected[index], got[index], `${path}[${index}]`)
      if (inner) return inner
    }
    return undefined
  }
  if (isRecord(expected) && isRecord(got)) {
    for (const key of new Set([...Object.keys(expected), ...Object.keys(got)])) {
      const inner = firstDifference(expected[key], got[key], path === "" ? key : `${path}.${key}`)
      if (inner) return inner
    }
    return undefined
  }
  return comparable(expected) === comparable(got) ? undefined : { path, expected, got }
}

/** Describes a difference on one line, with excerpts of both values. */
export function describeDifference({ path, expected, got }: Difference): string {
  const [shownExpected, shownGot] =
    typeof expected === "string" && typeof got === "string"
      ? excerpts(expected, got)
      : [shown(expected), shown(got)]
  return `${path === "" ? "the body" : path}: expected ${shownExpected}, got ${shownGot}`
}

const ownIds = /\b(ses|msg|prt|per|que|call|job)_[0-9a-z]{22}\b/g

function comparable(value: unknown): unknown {
  return typeof value === "string" ? value.replaceAll(ownIds, "$1_…") : value
}

/** Maximum number of characters in an excerpt, and the number of characters before the difference. */
const excerptLength = 120
const before = 30

function excerpts(expected: string, got: string): [string, string] {
  let at = 0
  while (at < expected.length && expected[at] === got[at]) at += 1
  const start = at <= before * 2 ? 0 : at - before
  const cut = (text: string) => {
    const end = start + excerptLength
    return `${start > 0 ? "…" : ""}${JSON.stringify(text.slice(start, end))}${end < text.length ? "…" : ""}`
  }
  return [cut(expected), cut(got)]
}

function shown(value: unknown): string {
  if (value === undefined) return "nothing"
  const text = JSON.stringify(value)
  return text.length > excerptLength ? `${text.slice(0, excerptLength)}…` : text
}
