import { isRecord } from "../util/json.ts"
import { argumentKeys, callOfUnknown, callOfValue, findTool, nameKeys, reportCall } from "./call-value.ts"
import type { ReadContext } from "./dialect.ts"
import { readLooseValue, type ScanOptions, scanBrackets } from "./loose-json.ts"
import { charAt, type Reading, type Source, skipSpace, slice, takes, takeWhile } from "./source.ts"

/** Options for reading objects. */
interface ObjectOptions {
  /** Mark that ends the objects, if the format has one. */
  stop?: string
}

/**
 * Reads calls as JSON objects, in sequence or in a list. Returns false if no object begins here.
 */
export function* readObjectCalls(context: ReadContext, options: ObjectOptions = {}): Reading<boolean> {
  const { source } = context
  yield* takeWrapper(source)
  const listed = yield* takes(source, "[")
  let count = 0
  for (;;) {
    yield* takeWhile(source, /[\s,;]*/y)
    const next = yield* charAt(source)
    if (next !== "{" || /[{%]/.test(yield* charAt(source, 1))) {
      // Extra closing brackets are a common error.
      yield* takeWhile(source, listed || count > 0 ? /[\s\]}]*/y : /\s*/y)
      return count > 0
    }
    yield* readObjectCall(context, options)
    count += 1
  }
}

/** Reads `{"tool_calls":` and similar beginnings, which models copy from APIs. */
function* takeWrapper(source: Source): Reading<void> {
  const start = source.position
  yield* skipSpace(source)
  const isObject = yield* takes(source, "{")
  yield* skipSpace(source)
  const isWrapper = isObject && (yield* takes(source, '"tool_call'))
  yield* takes(source, "s")
  const isKey = isWrapper && (yield* takes(source, '"'))
  yield* skipSpace(source)
  if (isKey && (yield* takes(source, ":"))) yield* skipSpace(source)
  else source.position = start
}

/**
 * Matches the usual beginning of a call's object. After this beginning, the input can be streamed while the model
 * writes it.
 */
const head = new RegExp(
  `\\{\\s*"(?:${nameKeys.join("|")})"\\s*:\\s*"([^"\\\\]+)"\\s*,\\s*"(?:${argumentKeys.join("|")})"\\s*:\\s*(?=\\{)`,
  "y",
)

/** Maximum length of the usual beginning, in characters. */
const longestHead = 300

/** Reads one object that begins at the current position. Reports exactly one call or malformed call to the sink. */
export function* readObjectCall(
  { source, sink, tools }: ReadContext,
  { stop }: ObjectOptions = {},
): Reading<void> {
  const start = source.position
  let announced: string | undefined
  /**
   * Before the head is found: the end of the text that was searched for the head. Afterwards: the end of the input that
   * the sink has received.
   */
  let reported = start
  /** End of the first bracketed value in the object. If the object has the usual head, this value is the input. */
  let inputEnd: number | undefined

  /** Returns the tool and the start of its input once the head is complete. */
  function readHead(): { tool: string; inputStart: number } | undefined {
    head.lastIndex = start
    const [whole = "", name] = head.exec(source.text) ?? []
    const named = name === undefined ? undefined : findTool(name, tools)
    return named?.ok ? { tool: named.tool, inputStart: start + whole.length } : undefined
  }

  function report(upTo: number): void {
    if (announced === undefined) {
      if (reported > start + longestHead) return
      const found = readHead()
      reported = upTo
      if (!found || found.inputStart >= upTo) return
      announced = found.tool
      reported = found.inputStart
      sink.start(announced)
    }
    const end = Math.min(upTo, inputEnd ?? upTo)
    if (end > reported) sink.delta(slice(source, reported, end))
    reported = Math.max(reported, end)
  }

  const { text, value, cut } = yield* readLoosely(source, {
    stop,
    onBracket(depth, position) {
      if (depth === 1 && position > start + 1) inputEnd ??= position
    },
    onProgress: report,
  })
  const result =
    value.ok && !cut
      ? callOfValue(value.value, tools, value.exact)
      : { ok: false as const, reason: value.ok ? "is incomplete" : `is not valid JSON: ${value.error}` }
  if (!result.ok) {
    const tool = readHead()?.tool ?? ("tool" in result ? result.tool : undefined)
    const unknown = "unknown" in result ? result.unknown : undefined
    sink.malformed({ text, reason: result.reason, tool, unknown, cut })
    return
  }
  const usual = value.ok && value.exact ? readHead() : undefined
  const input = usual && inputEnd ? source.text.slice(usual.inputStart, inputEnd) : result.call.input
  if (announced === undefined) {
    sink.start(result.call.tool)
    sink.delta(input)
  } else if (usual) report(source.position)
  sink.call({ ...result.call, input })
}

/**
 * Reads the arguments of a call whose name is known. The arguments start at the current position. They are a JSON
 * object, or a string that contains one. Reports one call or malformed call to the sink. `stop` is the mark that ends
 * the text with the arguments.
 */
export function* readArguments(context: ReadContext, name: string, stop?: string): Reading<void> {
  const { source, sink, tools } = context
  const start = source.position
  const found = findTool(name, tools)
  let reported = start
  if (found.ok) sink.start(found.tool)
  const asText = source.text.charAt(start) === '"'

  function report(upTo: number): void {
    if (found.ok && !asText && upTo > reported) sink.delta(slice(source, reported, upTo))
    reported = Math.max(reported, upTo)
  }

  const read = yield* readLoosely(source, { stop, onProgress: report })
  const { text: written, cut } = read
  let { value } = read
  if (value.ok && typeof value.value === "string") {
    const inner = readLooseValue(value.value)
    value = inner.ok ? { ...inner, exact: false } : inner
  }
  const text = source.text.slice(context.start, source.position)
  if (!found.ok) {
    const unknown = value.ok && !cut ? callOfUnknown(name, value.value) : undefined
    sink.malformed({ text, reason: found.reason, unknown })
    return
  }
  const { tool } = found
  if (cut) {
    sink.malformed({ text: written, reason: "is incomplete", tool, cut: true })
    return
  }
  if (!value.ok || !isRecord(value.value)) {
    const reason = value.ok ? "has no JSON object as arguments" : `is not valid JSON: ${value.error}`
    sink.malformed({ text, reason, tool })
    return
  }
  report(source.position)
  const repairs = [found.repaired, value.exact ? undefined : "the arguments were not valid JSON"]
  const repaired = repairs.filter((note) => note !== undefined).join("; ") || undefined
  const input = value.exact ? written : JSON.stringify(value.value)
  sink.call({ tool, input, repaired })
}

/**
 * Reads a value in brackets. If an unterminated string contains the mark `stop`, reads only the text before the mark.
 * `cut` is true if the answer reached its token limit within the value.
 */
function* readLoosely(source: Source, options: ScanOptions) {
  const { stop } = options
  const start = source.position
  const end = yield* scanBrackets(source, options)
  const text = source.text.slice(start, source.position).trimEnd()
  const value = readLooseValue(text)
  const hidden = (value.ok && value.exact) || stop === undefined ? -1 : text.indexOf(stop)
  if (hidden < 0) return { text, value, cut: end === "ended" && source.cut }
  source.position = start + hidden
  const before = text.slice(0, hidden).trimEnd()
  return { text: before, value: readLooseValue(before), cut: false }
}

/** Reports a call without arguments to the sink. */
export function readNoArguments({ source, sink, tools, start }: ReadContext, name: string): void {
  const found = findTool(name, tools)
  if (!found.ok) {
    const text = source.text.slice(start, source.position)
    sink.malformed({ text, reason: found.reason, unknown: callOfUnknown(name, {}) })
    return
  }
  reportCall(sink, { tool: found.tool, input: "{}", repaired: found.repaired })
}
