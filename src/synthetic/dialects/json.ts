import { argumentKeys, nameKeys, plainCalls } from "../call-value.ts"
import type { Dialect, Opening, ReadContext } from "../dialect.ts"
import { readLooseValue, scanBrackets } from "../loose-json.ts"
import { readArguments, readObjectCall, readObjectCalls } from "../read-json.ts"
import { endsLine, readPython } from "../read-python.ts"
import { charAt, type Reading, sees, skipSpace, takeAll, takes, takeWhile } from "../source.ts"
import { elementOpenings } from "./xml.ts"

/** A JSON object without marks. It is a call only if it names an offered tool and is alone on its lines. */
export const bareObject: Opening = bare("{")

/** A JSON list without marks. It is a list of calls only if it names offered tools and is alone on its lines. */
const bareList: Opening = bare("[")

function bare(literal: string): Opening {
  return {
    literal,
    explicit: false,
    *read(context) {
      const { source, tools } = context
      source.position = context.start
      if (!(yield* startsLikeCall(context))) return "text"
      const end = yield* scanBrackets(source)
      const value = readLooseValue(source.text.slice(context.start, source.position))
      const isCall = value.ok && plainCalls(value.value, tools) > 0
      if (!isCall || (end === "closed" ? !(yield* endsLine(context)) : source.cut)) return "text"
      const lineEnd = source.position
      source.position = context.start
      const isOne = literal === "{" && value.ok && plainCalls([value.value], tools) === 1
      yield* isOne ? readObjectCall(context) : readObjectCalls(context)
      source.position = lineEnd
      return "calls"
    },
  }
}

const firstKeys: ReadonlySet<string> = new Set([
  ...nameKeys,
  ...argumentKeys,
  ...["type", "id", "tool_call", "tool_calls", "tool_call_id"],
])

/**
 * Returns true if the first key of the object, or of the first object of a list, belongs to a call. Does not move the
 * position.
 */
export function* startsLikeCall({ source }: ReadContext): Reading<boolean> {
  const start = source.position
  yield* takeWhile(source, /[\s[]*/y)
  const brace = yield* charAt(source)
  if (brace === "{") source.position += 1
  yield* takeWhile(source, /[\s"']*/y)
  const key = yield* takeWhile(source, /\w*/y)
  source.position = start
  return brace === "{" && firstKeys.has(key)
}

/**
 * Returns an opening for a pair of marks that can contain any JSON. The opening is recognized only if the marks contain
 * nothing but calls to offered tools. `begin` reads the text between the first mark and the JSON, and returns false for
 * unexpected text.
 */
function enclosed(
  literal: string,
  closing: string,
  begin: (context: ReadContext) => Reading<boolean>,
): Opening {
  return {
    literal,
    explicit: false,
    *read(context) {
      const { source, tools } = context
      if (!(yield* begin(context)) || !(yield* startsLikeCall(context))) return "text"
      const start = source.position
      if ((yield* scanBrackets(source, { stop: closing })) !== "closed") return "text"
      const value = readLooseValue(source.text.slice(start, source.position))
      yield* takeWhile(source, /\s*/y)
      const closed = yield* takes(source, closing)
      if (!closed || !value.ok || plainCalls(value.value, tools) === 0) return "text"
      source.position = start
      yield* readObjectCalls(context)
      yield* takeAll(source, [closing])
      return "calls"
    },
  }
}

/** The tag that surrounds the list of tools in the prompt. Some models write their calls in this tag. */
export const listTag: Opening = enclosed("<tools>", "</tools>", function* ({ source }) {
  yield* skipSpace(source)
  return true
})

/**
 * Calls as JSON in code fences. A fence labeled `tool_call` is recognized in every dialect. A fence labeled `json` or
 * without a label is recognized only in this dialect.
 */
export const jsonFence: Dialect = {
  name: "json-fence",
  openings: [
    labelled("tool_calls"),
    labelled("tool_call"),
    ...["```json", "```"].map((fence) => enclosed(fence, "```", endLabel)),
    listTag,
    bareObject,
  ],
  instructions: "Write each call as JSON in its own code fence with the label tool_call:",
  write: (tool, input) => `\`\`\`tool_call\n${JSON.stringify({ name: tool, arguments: input })}\n\`\`\``,
}

/** Gemma's code fence, which contains Python. */
export const toolCodeFence: Opening = {
  literal: "```tool_code",
  explicit: true,
  *read(context) {
    const { source } = context
    if (!context.atLineStart || !(yield* endLabel(context))) return "text"
    const outcome = yield* readPython(context, true)
    if (outcome === "calls") yield* takeAll(source, ["```"])
    return outcome
  },
}

function labelled(label: string): Opening {
  return {
    literal: `\`\`\`${label}`,
    explicit: true,
    *read(context) {
      const { source, sink } = context
      if (!context.atLineStart || !(yield* endLabel(context))) return "text"
      if (!(yield* readObjectCalls(context, { stop: "\n```" }))) {
        yield* takeWhile(source, /(?:(?!```)[\s\S])*/y)
        const text = source.text.slice(context.start, source.position)
        sink.malformed({ text, reason: "contains no JSON object" })
      }
      yield* takeAll(source, ["```"])
      return "calls"
    },
  }
}

/** Reads to the end of the line. Returns false if the line contains other text. */
function* endLabel({ source }: ReadContext): Reading<boolean> {
  yield* takeWhile(source, /[ \t]*/y)
  const next = yield* charAt(source)
  if (next !== "\n" && next !== "\r") return false
  yield* takeWhile(source, /\s*/y)
  return true
}

const ends = ["<|eom_id|>", "<|eot_id|>"]

/** The mark that Llama 3 writes before JSON or Python. */
const pythonTag: Opening = {
  literal: "<|python_tag|>",
  explicit: true,
  *read(context) {
    const { source } = context
    yield* skipSpace(source)
    const first = yield* charAt(source)
    const found =
      first === "{" ? yield* readObjectCalls(context) : (yield* readPython(context, true)) === "calls"
    if (found) yield* takeAll(source, ends)
    return found ? "calls" : "text"
  },
}

/** Calls as JSON, alone or after a mark, the format used by Llama 3. */
export const llama: Dialect = {
  name: "llama",
  openings: [pythonTag, ...elementOpenings, bareObject],
  instructions: "Write each call as a JSON object on a separate line, with nothing around it:",
  write: (tool, input) => JSON.stringify({ name: tool, parameters: input }),
}

/** Mistral's mark. A list of objects or a name with arguments follows the mark. */
const toolCalls: Opening = {
  literal: "[TOOL_CALLS]",
  explicit: true,
  *read(context) {
    const { source } = context
    yield* skipSpace(source)
    // Models sometimes write the mark twice.
    if (yield* takes(source, "[TOOL_CALLS]")) yield* skipSpace(source)
    const first = yield* charAt(source)
    if (first === "[" || first === "{") return (yield* readObjectCalls(context)) ? "calls" : "text"
    let name = yield* readName(context)
    if (name === undefined) return "text"
    for (; name !== undefined; name = yield* readName(context)) yield* readArguments(context, name)
    return "calls"
  },
}

/**
 * Reads `name`, `name[ARGS]`, or `name[CALL_ID]abc[ARGS]` up to the arguments. Returns undefined if no name with
 * arguments follows.
 */
function* readName({ source }: ReadContext): Reading<string | undefined> {
  const start = source.position
  yield* skipSpace(source)
  const name = yield* takeWhile(source, /[\w.-]*/y)
  if (yield* takes(source, "[CALL_ID]")) yield* takeWhile(source, /\w*/y)
  yield* takes(source, "[ARGS]")
  yield* skipSpace(source)
  if (name !== "" && ((yield* sees(source, "{")) || (yield* sees(source, '"{')))) return name
  source.position = start
  return undefined
}

/** Calls as a JSON list after `[TOOL_CALLS]`, the format used by Mistral. */
export const mistral: Dialect = {
  name: "mistral",
  openings: [toolCalls, bareList],
  instructions: "Write all calls as one JSON list after [TOOL_CALLS], at the end of the answer:",
  write: (tool, input) => `[TOOL_CALLS]${JSON.stringify([{ name: tool, arguments: input }])}`,
}
