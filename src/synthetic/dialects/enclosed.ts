import { plainCalls } from "../call-value.ts"
import type { Opening, ReadContext } from "../dialect.ts"
import { readLooseValue } from "../loose-value.ts"
import { readObjectCalls } from "../read-object.ts"
import { scanBrackets } from "../scan-brackets.ts"
import { type Reading, skipSpace, takeAll, takes, takeWhile } from "../source.ts"
import { startsLikeCall } from "./bare-object.ts"

/**
 * A pair of marks that may hold any JSON: only where it holds calls of offered tools and nothing else. `begin` reads
 * what stands between the first mark and the JSON, and says whether that may come here.
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

/** The tag that the tools were listed in. Some models write their calls in it too. */
export const listTag: Opening = enclosed("<tools>", "</tools>", function* ({ source }) {
  yield* skipSpace(source)
  return true
})
