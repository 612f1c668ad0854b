import { isRecord } from "../util/json.ts"
import type { JsonSchema } from "../util/json-schema.ts"
import { callOfUnknown, findTool } from "./call-value.ts"
import type { ReadContext } from "./dialect.ts"
import { readLooseValue } from "./loose-json.ts"
import { charAt, findAny, type Reading, sees, skipSpace, slice, takes } from "./source.ts"

/** A call format whose parameters are elements. */
export interface ParameterForm {
  /** Reads the beginning of a parameter and returns its name, or undefined if no parameter follows. */
  key(context: ReadContext): Reading<string | undefined>
  /** Returns the mark that ends the value of this parameter. */
  valueEnd(key: string): string
  /** The mark that begins every parameter. */
  begin: string
  /** The marks that end the call. They may be missing at the end of the answer. */
  end: readonly string[]
}

/**
 * Reads the parameters up to the end of the call, and reports one call or malformed call to the sink. If the tool's
 * schema expects a string for a parameter, keeps the value verbatim, except for line breaks next to its tags.
 * Otherwise, reads the value as JSON if possible.
 */
export function* readParameters(context: ReadContext, name: string, form: ParameterForm): Reading<void> {
  const { source, sink, tools } = context
  const found = findTool(name, tools)
  const schema = found.ok ? tools.get(found.tool)?.inputSchema : undefined
  let input = ""
  if (found.ok) sink.start(found.tool)

  function add(text: string): void {
    input += text
    if (found.ok) sink.delta(text)
  }

  add("{")
  const keys = new Set<string>()
  /** Returns true if the tool has this parameter and the call has no value for it yet. */
  const isNext = (key: string): boolean => !keys.has(key) && propertyOf(schema, key) !== undefined
  let problem: string | undefined
  let cut = false
  for (;;) {
    yield* skipSpace(source)
    const key = yield* form.key(context)
    if (key === undefined) break
    if (keys.has(key)) problem ??= `contains the parameter ${key} twice`
    add(`${keys.size > 0 ? "," : ""}${JSON.stringify(key)}:`)
    keys.add(key)
    const isText = takesText(schema, key)
    const value = isText
      ? yield* readText(context, { form, key, isNext }, add)
      : yield* readValue(context, { form, key, isNext })
    if (value === undefined) {
      problem ??= `has no closing tag for the parameter ${key}`
      cut = source.cut
      break
    }
    if (!isText) add(valueText(value))
  }
  const closed = yield* takeOne(context, form.end)
  if (!closed && !(source.ended && source.position >= source.text.length))
    problem ??= `contains text outside of parameters; the call must end with ${form.end[0]}`
  if (!closed && source.cut) {
    problem ??= "is incomplete"
    cut = true
  }
  const text = source.text.slice(context.start, source.position)
  if (!found.ok) {
    const unknown = problem === undefined ? callOfUnknown(name, JSON.parse(`${input}}`)) : undefined
    sink.malformed({ text, reason: found.reason, unknown, cut })
    return
  }
  if (problem !== undefined) {
    sink.malformed({ text, reason: problem, tool: found.tool, cut })
    return
  }
  add("}")
  sink.call({ tool: found.tool, input, repaired: found.repaired })
}

function* takeOne({ source }: ReadContext, literals: readonly string[]): Reading<boolean> {
  yield* skipSpace(source)
  for (const literal of literals) if (yield* takes(source, literal)) return true
  return false
}

/** The parameter to read, and a function that recognizes the next parameter. */
interface ValueContext {
  form: ParameterForm
  key: string
  isNext(key: string): boolean
}

/** Reads a string value and streams it as the content of a JSON string. */
function* readText(
  context: ReadContext,
  valueContext: ValueContext,
  add: (text: string) => void,
): Reading<string | undefined> {
  const { source } = context
  add('"')
  yield* skipBreak(source)
  let reported = source.position
  const report = (upTo: number) => {
    // The line break before the end mark is not part of the value, so the last line break is held back.
    const certain =
      upTo - (/\r?\n?$/.exec(slice(source, Math.max(reported, upTo - 2), upTo))?.[0].length ?? 0)
    if (certain > reported) add(inString(slice(source, reported, certain)))
    reported = Math.max(reported, certain)
  }
  const start = source.position
  const value = yield* readValue(context, valueContext, report)
  if (value === undefined) return undefined
  const whole = value.replace(/\r?\n$/, "")
  if (start + whole.length > reported) add(inString(source.text.slice(reported, start + whole.length)))
  add('"')
  return whole
}

/**
 * Reads a value and its end mark. Because the value may contain its own end mark, the value ends only where another
 * parameter or the end of the call follows. The end mark may be missing at that point. If the value does not end,
 * returns undefined, and moves the position to the end of the first end mark, or to the end of the text if there is no
 * end mark.
 */
function* readValue(
  context: ReadContext,
  { form, key, isNext }: ValueContext,
  onProgress?: (upTo: number) => void,
): Reading<string | undefined> {
  const { source } = context
  const start = source.position
  const valueEnd = form.valueEnd(key)
  const literals = [valueEnd, form.begin, ...form.end]
  let first: number | undefined
  for (let from = start; ; ) {
    const found = yield* findAny(source, literals, from, onProgress)
    if (found === undefined) {
      source.position = first ?? source.text.length
      return undefined
    }
    const value = source.text.slice(start, found.at)
    source.position = found.at
    if (found.literal === valueEnd) {
      source.position += valueEnd.length
      if (yield* endsParameter(context, form)) return value
      first ??= source.position
    } else if (first === undefined) {
      const follows =
        found.literal === form.begin
          ? yield* beginsParameter(context, form, isNext)
          : yield* endsCall(context, found.literal)
      if (follows) return value
    }
    source.position = start
    from = found.at + found.literal.length
  }
}

/** Returns true if a parameter, the end of the call, or the end of the answer follows. Does not move the position. */
function* endsParameter({ source }: ReadContext, form: ParameterForm): Reading<boolean> {
  const start = source.position
  yield* skipSpace(source)
  let ends = (yield* charAt(source)) === ""
  for (const literal of [form.begin, ...form.end]) ends ||= yield* sees(source, literal)
  source.position = start
  return ends
}

function* beginsParameter(
  context: ReadContext,
  form: ParameterForm,
  isNext: (key: string) => boolean,
): Reading<boolean> {
  const start = context.source.position
  const key = yield* form.key(context)
  context.source.position = start
  return key !== undefined && isNext(key)
}

/** Returns true if the end of the call is followed by another mark or by nothing. */
function* endsCall({ source }: ReadContext, end: string): Reading<boolean> {
  const start = source.position
  source.position += end.length
  yield* skipSpace(source)
  const next = yield* charAt(source)
  source.position = start
  return next === "" || next === "<"
}

function* skipBreak(source: ReadContext["source"]): Reading<void> {
  while (source.position + 1 >= source.text.length && !source.ended) yield
  source.position += /^\r?\n/.exec(source.text.slice(source.position, source.position + 2))?.[0].length ?? 0
}

function inString(text: string): string {
  return JSON.stringify(text).slice(1, -1)
}

/** Returns the value as JSON. A value that is not JSON becomes a JSON string. */
function valueText(written: string): string {
  const text = written.trim()
  const value = readLooseValue(text)
  return JSON.stringify(value.ok && text !== "" ? value.value : text)
}

/** Returns true if the schema allows only strings for the parameter. Unknown parameters are strings. */
function takesText(schema: JsonSchema | undefined, key: string): boolean {
  const property = propertyOf(schema, key)
  if (property === undefined) return true
  if (property.type === "string") return true
  return property.type === undefined && Array.isArray(property.enum) && property.enum.every(isText)
}

function propertyOf(schema: JsonSchema | undefined, key: string): Record<string, unknown> | undefined {
  const properties = schema?.properties
  const property = isRecord(properties) && Object.hasOwn(properties, key) ? properties[key] : undefined
  return isRecord(property) ? property : undefined
}

function isText(value: unknown): boolean {
  return typeof value === "string"
}
