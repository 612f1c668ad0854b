import { isRecord } from "../util/json.ts"
import { callOfUnknown, findTool } from "./call-value.ts"
import type { ReadContext } from "./dialect.ts"
import { readLooseValue } from "./loose-value.ts"
import { scanBrackets } from "./scan-brackets.ts"
import { type Reading, slice } from "./source.ts"

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
