import { isRecord } from "../util/json.ts"
import type { JsonSchema } from "../util/json-schema.ts"
import { callOfUnknown, findTool } from "./call-value.ts"
import type { ReadContext } from "./dialect.ts"
import { readLooseValue } from "./loose-value.ts"
import { charAt, findAny, type Reading, sees, skipSpace, slice, takes } from "./source.ts"

/** How the parameters of a call are written as elements. */
export interface ParameterForm {
  /** Reads a parameter's beginning and returns its name; undefined where none comes next. */
  key(context: ReadContext): Reading<string | undefined>
  /** What ends a value; it may depend on the parameter. */
  valueEnd(key: string): string
  /** What every parameter begins with. */
  begin: string
  /** What ends the call. Its end may be missing where the answer ends. */
  end: readonly string[]
}

/**
 * Reads a call's parameters to its end, and tells the sink of one call, or of one that is malformed. A value that the
 * tool's schema wants as a text is taken as it stands, without the line breaks next to its marks; any other is read as
 * JSON, where it is JSON.
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
  /** A parameter of the tool's own that was not given yet. */
  const isNext = (key: string): boolean => !keys.has(key) && propertyOf(schema, key) !== undefined
  let problem: string | undefined
  let cut = false
  for (;;) {
    yield* skipSpace(source)
    const key = yield* form.key(context)
    if (key === undefined) break
    if (keys.has(key)) problem ??= `gives the parameter ${key} twice`
    add(`${keys.size > 0 ? "," : ""}${JSON.stringify(key)}:`)
    keys.add(key)
    const isText = takesText(schema, key)
    const value = isText
      ? yield* readText(context, { form, key, isNext }, add)
      : yield* readValue(context, { form, key, isNext })
    if (value === undefined) {
      problem ??= `does not end the parameter ${key}`
      cut = source.cut
      break
    }
    if (!isText) add(valueText(value))
  }
  const closed = yield* takesOne(context, form.end)
  if (!closed && !(source.ended && source.position >= source.text.length))
    problem ??= `has text that is no parameter; it must end with ${form.end[0]}`
  if (!closed && source.cut) {
    problem ??= "is not whole"
    cut = true
  }
  const text = source.text.slice(context.start, source.position)
  if (!found.ok) {
    const unknown = problem === undefined ? callOfUnknown(name, JSON.parse(`${input}}`)) : undefined
    sink.malformed({ text, reason: found.reason, ...(unknown && { unknown }), ...(cut && { cut }) })
    return
  }
  if (problem !== undefined) {
    sink.malformed({ text, reason: problem, tool: found.tool, ...(cut && { cut }) })
    return
  }
  add("}")
  sink.call({ tool: found.tool, input, repaired: found.repaired })
}

function* takesOne({ source }: ReadContext, literals: readonly string[]): Reading<boolean> {
  yield* skipSpace(source)
  for (const literal of literals) if (yield* takes(source, literal)) return true
  return false
}

/** The value that is being read, and what may follow it. */
interface ValuePlace {
  form: ParameterForm
  key: string
  isNext(key: string): boolean
}

/** A text value, handed on as it comes, as the inside of a JSON string. */
function* readText(
  context: ReadContext,
  place: ValuePlace,
  add: (text: string) => void,
): Reading<string | undefined> {
  const { source } = context
  add('"')
  yield* skipBreak(source)
  let told = source.position
  const tell = (upTo: number) => {
    // A line break before the end's mark is not the value's: one is kept back until more comes.
    const sure = upTo - (/\r?\n?$/.exec(slice(source, Math.max(told, upTo - 2), upTo))?.[0].length ?? 0)
    if (sure > told) add(inString(slice(source, told, sure)))
    told = Math.max(told, sure)
  }
  const start = source.position
  const value = yield* readValue(context, place, tell)
  if (value === undefined) return undefined
  const whole = value.replace(/\r?\n$/, "")
  if (start + whole.length > told) add(inString(source.text.slice(told, start + whole.length)))
  add('"')
  return whole
}

/**
 * Reads a value and its end. The mark that ends it may stand in it, and is its end only where another parameter or the
 * call's end follows; it may be missing before these. Undefined where the value does not end: then
 * all is read, or up to the first mark that could not be its end.
 */
function* readValue(
  context: ReadContext,
  { form, key, isNext }: ValuePlace,
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

/** True where a parameter, the call's end or the answer's comes next. Reads nothing. */
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

/** True where nothing but another mark stands behind the call's end. */
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

/** JSON of a value that is no text, or of the text where it can be read as nothing else. */
function valueText(written: string): string {
  const text = written.trim()
  const value = readLooseValue(text)
  return JSON.stringify(value.ok && text !== "" ? value.value : text)
}

/** True where the schema allows a text and nothing that looks like one. Unknown parameters are taken as texts. */
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
