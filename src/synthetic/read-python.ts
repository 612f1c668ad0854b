import { isRecord } from "../util/json.ts"
import { callOfUnknown, findTool, reportCall } from "./call-value.ts"
import type { ReadCall, ReadContext, SyntheticTool } from "./dialect.ts"
import { type PythonCall, readPythonCalls, scanBrackets } from "./loose-json.ts"
import { charAt, type Reading, skipSpace, takes, takeWhile } from "./source.ts"

/**
 * Reads Python calls in a list or in sequence. If `sure` is false, the text may be prose. In that case, reads only
 * calls to offered tools that are alone on their lines, and returns `text` if there is no such call.
 */
export function* readPython(context: ReadContext, sure: boolean): Reading<"calls" | "text"> {
  const { source, tools } = context
  const start = source.position
  const bracket = (yield* charAt(source)) === "["
  if (bracket) source.position += 1
  yield* skipSpace(source)
  const name = yield* takeWhile(source, /[\w.-]*/y)
  if ((yield* charAt(source)) !== "(" || name === "") return "text"
  if (!sure && !tools.has(name)) return "text"
  if (bracket) source.position = start
  const end = yield* scanBrackets(source)
  if (!bracket) yield* takeFurther(context)
  const text = source.text.slice(start, source.position)
  if (!sure && end === "closed" && !(yield* endsLine(context))) return "text"
  const cut = end !== "closed" && source.cut
  const read =
    end === "closed" || !cut ? callsOf(text, tools) : { ok: false as const, reason: "is incomplete" }
  if (!read.ok) {
    const unknown = "unknown" in read ? read.unknown : undefined
    context.sink.malformed({ text, reason: read.reason, unknown, cut })
    return "calls"
  }
  for (const call of read.calls) reportCall(context.sink, call)
  return "calls"
}

/** Reads further calls on the following lines, or after a comma or semicolon. */
function* takeFurther({ source }: ReadContext): Reading<void> {
  for (;;) {
    const before = source.position
    yield* takeWhile(source, /[\s,;]*/y)
    const name = yield* takeWhile(source, /[\w.-]*/y)
    if (name === "" || (yield* charAt(source)) !== "(") {
      source.position = before
      return
    }
    yield* scanBrackets(source)
  }
}

/** Returns true if only white space, a mark, or a semicolon and the next call follow on the line. */
export function* endsLine(context: ReadContext): Reading<boolean> {
  const { source } = context
  const between = yield* takeWhile(source, /[ \t;]*/y)
  const next = yield* charAt(source)
  if (next === "<") return yield* onlyMarks(context)
  return next === "" || /[\r\n]/.test(next) || (between.includes(";") && /[[{]/.test(next))
}

/** Returns true if the rest of the line contains only marks. Does not move the position. */
function* onlyMarks({ source }: ReadContext): Reading<boolean> {
  const start = source.position
  let next = "<"
  while (next === "<" && (yield* takes(source, "<"))) {
    yield* takeWhile(source, /[^<>\n]{0,40}/y)
    if (!(yield* takes(source, ">"))) break
    yield* takeWhile(source, /[ \t]*/y)
    next = yield* charAt(source)
  }
  source.position = start
  return next === "" || /[\r\n]/.test(next)
}

function callsOf(
  text: string,
  tools: ReadonlyMap<string, SyntheticTool>,
): { ok: true; calls: ReadCall[] } | { ok: false; reason: string; unknown?: ReadCall | undefined } {
  // Some models wrap the call in print().
  const read = readPythonCalls(/^\s*print\(([\s\S]*)\)\s*$/.exec(text)?.[1] ?? text)
  if (!read.ok) return { ok: false, reason: `cannot be read: ${read.error}` }
  const calls: ReadCall[] = []
  for (const call of read.calls) {
    // Llama calls its built-in tools through a method.
    const name = call.name.replace(/\.call$/, "")
    const found = findTool(name, tools)
    const input = inputOf(call, found.ok ? tools.get(found.tool) : undefined)
    if (!found.ok) {
      const unknown = read.calls.length === 1 ? callOfUnknown(name, input) : undefined
      return { ok: false, reason: found.reason, unknown }
    }
    if (input === undefined)
      return { ok: false, reason: `contains more values than the tool ${call.name} has parameters` }
    calls.push({ tool: found.tool, input: JSON.stringify(input), repaired: found.repaired })
  }
  return { ok: true, calls }
}

/**
 * Assigns positional values to parameters in the order of the tool's schema. A single object without named values is
 * the whole input. Returns undefined if there are more values than parameters.
 */
function inputOf(
  { positional, named }: PythonCall,
  tool: SyntheticTool | undefined,
): Record<string, unknown> | undefined {
  const only = positional[0]
  if (positional.length === 1 && isRecord(only) && Object.keys(named).length === 0) return only
  const properties = tool?.inputSchema.properties
  const names = isRecord(properties) ? Object.keys(properties) : []
  if (positional.length > names.length) return undefined
  return { ...Object.fromEntries(positional.map((value, index) => [names[index], value])), ...named }
}
