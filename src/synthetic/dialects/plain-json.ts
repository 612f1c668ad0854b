import { argumentKeys, nameKeys, plainCalls } from "../call-value.ts"
import type { Opening, ReadContext } from "../dialect.ts"
import { readLooseValue } from "../loose-value.ts"
import { readObjectCall, readObjectCalls } from "../read-json.ts"
import { endsLine } from "../read-python.ts"
import { scanBrackets } from "../scan-json.ts"
import { charAt, type Reading, skipSpace, takeAll, takes, takeWhile } from "../source.ts"

/** A JSON object without marks. It is a call only if it names an offered tool and is alone on its lines. */
export const bareObject: Opening = bare("{")

/** A JSON list without marks. It is a list of calls only if it names offered tools and is alone on its lines. */
export const bareList: Opening = bare("[")

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
export function enclosed(
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
