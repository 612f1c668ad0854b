import { isRecord, parseJson } from "../util/json.ts"
import { ProviderError } from "./errors.ts"
import { repairAnswer } from "./repair-answer.ts"

/** Limits for a response body. */
interface AnswerLimits {
  /** Maximum size of a body in bytes. */
  bodyBytes: number
  /** Maximum size of one line of an event stream in bytes. */
  lineBytes: number
  /**
   * Maximum time in milliseconds without data after the finish reason. After this time, the answer counts as complete.
   */
  closingMs: number
  /**
   * Maximum length in bytes of an event whose text is joined with the text of the next event. 0 leaves all events
   * unchanged.
   */
  joinedLength: number
}

/** Default limits. The longest model answers, with one event per token, use less than a quarter of `bodyBytes`. */
const defaultLimits: AnswerLimits = {
  bodyBytes: 256 * 2 ** 20,
  lineBytes: 32 * 2 ** 20,
  closingMs: 5_000,
  joinedLength: 0,
}

/**
 * Wraps a `fetch` so that a defective answer cannot exhaust memory or lose its content:
 * - If the body or a line exceeds its limit, reading fails with a `ProviderError` that is not retryable.
 * - A complete final event is accepted even if the blank line after it is missing.
 * - If the server sends nothing for `closingMs` after the finish reason, the stream ends as if the server had closed
 *   it.
 * - Events of up to `joinedLength` bytes that arrive together and differ only in their text are joined into one event.
 * - Fields with a wrong type are repaired: see {@link repairAnswer}.
 * - A streamed call without a name becomes a call to `invalid`, because provider packages reject or drop a call without
 *   a name.
 */
export function guardAnswers(ask: typeof fetch, limits: Partial<AnswerLimits> = {}): typeof fetch {
  return async (input, init) => {
    const response = await ask(input, init)
    if (response.body === null) return response
    const type = response.headers.get("content-type") ?? ""
    const isEvents = /^text\/event-stream\b/i.test(type)
    const body = guardBody(response.body, isEvents, { ...defaultLimits, ...limits })
    const isWhole = response.ok && /^application\/json\b/i.test(type)
    return withBody(response, isWhole ? body.pipeThrough(repairedBody()) : body)
  }
}

/**
 * Returns a copy of the response with a different body. The copy has only the properties that provider packages and the
 * gateway read.
 */
export function withBody(
  { url, ok, status, statusText, headers }: Response,
  body: ReadableStream<Uint8Array>,
): Response {
  const text = () => new Response(body).text()
  const json = async () => JSON.parse(await text()) as unknown
  return { url, ok, status, statusText, headers, body, text, json } as unknown as Response
}

/** Collects a body of JSON and repairs it. */
function repairedBody(): TransformStream<Uint8Array, Uint8Array> {
  const chunks: Uint8Array[] = []
  return new TransformStream({
    transform: (chunk) => void chunks.push(chunk),
    flush(controller) {
      const body = Buffer.concat(chunks)
      const parsed = parseJson(body.toString())
      const isChanged = parsed.ok && repairAnswer(parsed.value)
      controller.enqueue(isChanged ? Buffer.from(JSON.stringify(parsed.value)) : body)
    },
  })
}

function guardBody(
  body: ReadableStream<Uint8Array>,
  isEvents: boolean,
  { bodyBytes, lineBytes, closingMs, joinedLength }: AnswerLimits,
): ReadableStream<Uint8Array> {
  const reader = body.getReader()
  const events = isEvents ? createEventReader(joinedLength) : undefined
  let size = 0

  /**
   * Reads the next bytes. If the server sends nothing for `closingMs` after the finish reason, returns `done`, as at
   * the end of the stream.
   */
  async function read(): Promise<Awaited<ReturnType<typeof reader.read>>> {
    if (!events?.isFinished()) return await reader.read()
    const { promise: silence, resolve } = Promise.withResolvers<undefined>()
    const timer = setTimeout(() => resolve(undefined), closingMs)
    const result = await Promise.race([reader.read(), silence])
    clearTimeout(timer)
    if (result !== undefined) return result
    await reader.cancel()
    return { done: true, value: undefined }
  }

  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        for (;;) {
          const { done, value } = await read()
          if (done) {
            const rest = events?.end()
            if (rest !== undefined) controller.enqueue(rest)
            controller.close()
            return
          }
          size += value.length
          const checked = events === undefined ? value : events.take(value)
          const isLong = (events?.openBytes() ?? 0) > lineBytes
          if (isLong || size > bodyBytes) {
            const [what, limit] = isLong ? ["a line", lineBytes] : ["an answer", bodyBytes]
            const error = tooLong(`The server sent ${what} of more than ${limit / 2 ** 20} MiB.`)
            await reader.cancel(error)
            throw error
          }
          if (checked === undefined) continue
          controller.enqueue(checked)
          return
        }
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  )
}

/** Returns the error for an answer that exceeds a limit. `reason` is a sentence. */
export function tooLong(reason: string): ProviderError {
  return new ProviderError(`${reason} The answer was rejected. Try again, or use another model.`, {
    kind: "bad-response",
    retryable: false,
  })
}

/**
 * Matches the end of an answer in the Chat Completions, Responses and Messages APIs. The pattern cannot match text from
 * the model, because this text is escaped in JSON.
 */
const finish =
  /(?<!\\)"(?:finish_reason"\s*:\s*"[^"]|type"\s*:\s*"(?:message_stop|response\.(?:completed|incomplete))")/

/** Creates a reader that returns the complete lines of an event stream and detects the end of the answer. */
function createEventReader(joinedLength: number) {
  let open: Uint8Array[] = []
  let openBytes = 0
  let finished = false
  const unnamed = createUnnamedCalls()

  /** Joins the texts of events and repairs the events. Before the line that ends the answer, inserts an event that names the unnamed calls. */
  function checked(lines: Buffer): Uint8Array {
    // Decoding as Latin-1 preserves every byte.
    const text = joinTexts(lines.toString("latin1"), joinedLength)
    const isFinish = finish.test(text)
    finished ||= isFinish
    const checked = text.split(/(?<=\n)/).map((line) => {
      const kept = line.startsWith("data:") ? repaired(line) : line
      return isFinish && finish.test(line) ? unnamed.take() + kept : kept
    })
    return Buffer.from(checked.join(""), "latin1")
  }

  /** Repairs a line that contains a JSON chunk. Returns all other lines unchanged. */
  function repaired(line: string): string {
    const parsed = parseJson(Buffer.from(line.slice(5), "latin1").toString())
    if (!parsed.ok || ![repairAnswer(parsed.value), unnamed.read(parsed.value)].includes(true)) return line
    return Buffer.from(`data: ${JSON.stringify(parsed.value)}\n`).toString("latin1")
  }

  return {
    isFinished: () => finished,
    /** Size of the current incomplete line in bytes. */
    openBytes: () => openBytes,
    /** Returns the lines that are complete after these bytes, or undefined if no line is complete. */
    take(bytes: Uint8Array): Uint8Array | undefined {
      const end = Math.max(bytes.lastIndexOf(10), bytes.lastIndexOf(13)) + 1
      if (end > 0) {
        const lines = Buffer.concat([...open, bytes.subarray(0, end)])
        open = [bytes.subarray(end)]
        openBytes = bytes.length - end
        return checked(lines)
      }
      open.push(bytes)
      openBytes += bytes.length
      return undefined
    },
    /** Returns the final event with the missing blank line added, or undefined if the event is incomplete. */
    end(): Uint8Array | undefined {
      const last = Buffer.concat(open)
      const data = /^data:(.*)$/.exec(last.toString().trimEnd())?.[1]?.trim()
      const isWhole = data === undefined ? last.length === 0 : data === "[DONE]" || parseJson(data).ok
      return isWhole ? checked(Buffer.concat([last, Buffer.from("\n\n")])) : undefined
    },
  }
}

/**
 * Matches the values in a delta that contain text, reasoning or arguments, in the Chat Completions and Messages APIs.
 */
const textValues =
  /"(?:content|reasoning|reasoning_content|arguments|text|thinking|partial_json)"\s*:\s*"((?:[^"\\]|\\.)+)"/g

/** An event, split around its text. If the event does not contain exactly one text, `before` is the whole event. */
interface TextEvent {
  before: string
  text: string
  after: string
}

/**
 * Joins successive events that differ only in their text. This saves time, because the provider package parses and
 * validates each event.
 */
function joinTexts(lines: string, maxLength: number): string {
  const joined: TextEvent[] = []
  for (const event of lines.split("\n\n")) {
    const next = splitEvent(event, maxLength)
    const last = joined.at(-1)
    if (last && next.text !== "" && last.before === next.before && last.after === next.after)
      last.text += next.text
    else joined.push(next)
  }
  return joined.map(({ before, text, after }) => before + text + after).join("\n\n")
}

function splitEvent(event: string, maxLength: number): TextEvent {
  const isDelta = event.length <= maxLength && event.includes('"delta"')
  const [found, another] = isDelta ? event.matchAll(textValues) : []
  const text = found?.[1] ?? ""
  if (!found || another) return { before: event, text: "", after: "" }
  const end = found.index + found[0].length - 1
  return { before: event.slice(0, end - text.length), text, after: event.slice(end) }
}

/**
 * Finds calls without a name in chunks of the Chat Completions API. Provider packages accept an unnamed call only if
 * its name arrives in a later chunk. Otherwise, they reject or drop the call.
 */
function createUnnamedCalls() {
  const named = new Set<unknown>()
  const unnamed = new Set<unknown>()

  /** Records whether a call has a name, and removes a blank name. Returns true if the call has no name yet. */
  function check(call: unknown): boolean {
    if (!isRecord(call) || !isRecord(call.function)) return false
    const { index = 0, function: called } = call
    const isBlank = typeof called.name !== "string" || called.name.trim() === ""
    if (!isBlank) named.add(index)
    if (!isBlank || named.has(index)) return false
    unnamed.add(index)
    delete called.name
    return true
  }

  return {
    /** Records the unnamed calls in a chunk and removes blank names. Returns true if there are any. */
    read(value: unknown): boolean {
      const choices = isRecord(value) ? value.choices : undefined
      const [choice] = Array.isArray(choices) ? choices : []
      const calls = isRecord(choice) && isRecord(choice.delta) ? choice.delta.tool_calls : undefined
      return Array.isArray(calls) && calls.map(check).includes(true)
    },
    /** Returns an event that gives the name `invalid` to all calls without a name. */
    take(): string {
      const tool_calls = [...unnamed]
        .filter((index) => !named.has(index))
        .map((index) => ({ index, type: "function", function: { name: "invalid" } }))
      unnamed.clear()
      if (tool_calls.length === 0) return ""
      return `data: ${JSON.stringify({ choices: [{ index: 0, delta: { tool_calls } }] })}\n\n`
    },
  }
}
