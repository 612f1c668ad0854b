import { isRecord } from "../util/json.ts"
import { argumentKeys, callOfUnknown, callOfValue, findTool, nameKeys } from "./call-value.ts"
import type { ReadContext } from "./dialect.ts"
import { readLooseValue } from "./loose-value.ts"
import { scanBrackets } from "./scan-json.ts"
import { charAt, type Reading, type Source, skipSpace, slice, takes, takeWhile } from "./source.ts"

/** Where objects end that the model leaves open. */
interface ObjectOptions {
  /** What ends the text that the objects stand in, where there is such a mark. */
  stop?: string
}

/**
 * Reads the calls that stand next as JSON objects, one after the other or in a list. False where there is not even the
 * beginning of one.
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
      // Closing brackets too many are a common slip.
      yield* takeWhile(source, listed || count > 0 ? /[\s\]}]*/y : /\s*/y)
      return count > 0
    }
    yield* readObjectCall(context, options)
    count += 1
  }
}

/** `{"tool_calls": [` and the like, of models that learned the shape of an API. */
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

/** How a call's object usually begins: its input can then be handed on while it is still being written. */
const head = new RegExp(
  `\\{\\s*"(?:${nameKeys.join("|")})"\\s*:\\s*"([^"\\\\]+)"\\s*,\\s*"(?:${argumentKeys.join("|")})"\\s*:\\s*(?=\\{)`,
  "y",
)

/** Characters within which a usual head ends. */
const longestHead = 300

/** Reads one object, whose brace stands next. Tells the sink of exactly one call, or of one that is malformed. */
export function* readObjectCall(
  { source, sink, tools }: ReadContext,
  { stop }: ObjectOptions = {},
): Reading<void> {
  const start = source.position
  let announced: string | undefined
  /** From here on the sink was not told the input yet; before the head was found, how far it was looked for. */
  let told = start
  /** Behind the first value in brackets within the object: after a usual head, the end of the input. */
  let inputEnd: number | undefined

  /** The tool, and where its input begins, as soon as that much was written. */
  function readHead(): { tool: string; inputStart: number } | undefined {
    head.lastIndex = start
    const [whole = "", name] = head.exec(source.text) ?? []
    const named = name === undefined ? undefined : findTool(name, tools)
    return named?.ok ? { tool: named.tool, inputStart: start + whole.length } : undefined
  }

  function tell(upTo: number): void {
    if (announced === undefined) {
      if (told > start + longestHead) return
      const found = readHead()
      told = upTo
      if (!found || found.inputStart >= upTo) return
      announced = found.tool
      told = found.inputStart
      sink.start(announced)
    }
    const end = Math.min(upTo, inputEnd ?? upTo)
    if (end > told) sink.delta(slice(source, told, end))
    told = Math.max(told, end)
  }

  const end = yield* scanBrackets(source, {
    stop,
    onBracket(depth, position) {
      if (depth === 1 && position > start + 1) inputEnd ??= position
    },
    onProgress: tell,
  })
  let text = source.text.slice(start, source.position)
  let value = readLooseValue(text.trimEnd())
  const hidden = (value.ok && value.exact) || stop === undefined ? -1 : text.indexOf(stop)
  if (hidden >= 0) {
    // A string that did not end may have hidden the mark: what stands behind the mark is no part of the call.
    source.position = start + hidden
    text = text.slice(0, hidden)
    value = readLooseValue(text.trimEnd())
  }
  const cut = end === "ended" && source.cut && hidden < 0
  const result =
    value.ok && !cut
      ? callOfValue(value.value, tools, value.exact)
      : { ok: false as const, reason: value.ok ? "is not whole" : `is no valid JSON: ${value.error}` }
  if (!result.ok) {
    const tool = readHead()?.tool ?? ("tool" in result ? result.tool : undefined)
    const unknown = "unknown" in result ? result.unknown : undefined
    sink.malformed({ text, reason: result.reason, tool, ...(unknown && { unknown }), ...(cut && { cut }) })
    return
  }
  const usual = value.ok && value.exact ? readHead() : undefined
  const input = usual && inputEnd ? source.text.slice(usual.inputStart, inputEnd) : result.call.input
  if (announced === undefined) {
    sink.start(result.call.tool)
    sink.delta(input)
  } else if (usual) tell(source.position)
  sink.call({ ...result.call, input })
}

/**
 * Reads the arguments of a call whose name is known: a JSON object, whose brace stands next, or a text with one. Tells
 * the sink of one call, or of one that is malformed. `stop` ends the text that the object stands in.
 */
export function* readArguments(context: ReadContext, name: string, stop?: string): Reading<void> {
  const { source, sink, tools } = context
  const start = source.position
  const found = findTool(name, tools)
  let told = start
  if (found.ok) sink.start(found.tool)
  const asText = source.text.charAt(start) === '"'

  function tell(upTo: number): void {
    if (found.ok && !asText && upTo > told) sink.delta(slice(source, told, upTo))
    told = Math.max(told, upTo)
  }

  const end = yield* scanBrackets(source, { stop, onProgress: tell })
  let written = source.text.slice(start, source.position).trimEnd()
  let value = readLooseValue(written)
  const hidden = (value.ok && value.exact) || stop === undefined ? -1 : written.indexOf(stop)
  if (hidden >= 0) {
    // A string that did not end may have hidden the mark: what stands behind the mark is no part of the call.
    source.position = start + hidden
    written = written.slice(0, hidden).trimEnd()
    value = readLooseValue(written)
  }
  if (value.ok && typeof value.value === "string") {
    const inner = readLooseValue(value.value)
    value = inner.ok ? { ...inner, exact: false } : inner
  }
  const text = source.text.slice(context.start, source.position)
  const cut = end === "ended" && source.cut && hidden < 0
  if (!found.ok) {
    const unknown = value.ok && !cut ? callOfUnknown(name, value.value) : undefined
    sink.malformed({ text, reason: found.reason, ...(unknown && { unknown }) })
    return
  }
  const { tool } = found
  if (cut) {
    sink.malformed({ text: written, reason: "is not whole", tool, cut: true })
    return
  }
  if (!value.ok || !isRecord(value.value)) {
    const reason = value.ok ? "gives no JSON object" : `is no valid JSON: ${value.error}`
    sink.malformed({ text, reason, tool })
    return
  }
  tell(source.position)
  const notes = [found.repaired, value.exact ? undefined : "the arguments were no valid JSON"]
  const repaired = notes.filter((note) => note !== undefined).join("; ")
  const input = value.exact ? written : JSON.stringify(value.value)
  sink.call({ tool, input, ...(repaired && { repaired }) })
}

/** Tells the sink of a call without arguments. */
export function readNoArguments({ source, sink, tools, start }: ReadContext, name: string): void {
  const found = findTool(name, tools)
  if (!found.ok) {
    const text = source.text.slice(start, source.position)
    sink.malformed({ text, reason: found.reason, unknown: callOfUnknown(name, {}) })
    return
  }
  sink.start(found.tool)
  sink.delta("{}")
  sink.call({ tool: found.tool, input: "{}", repaired: found.repaired })
}
