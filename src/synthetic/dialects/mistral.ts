import type { Dialect, Opening, ReadContext } from "../dialect.ts"
import { readArguments, readObjectCalls } from "../read-json.ts"
import { charAt, type Reading, sees, skipSpace, takes, takeWhile } from "../source.ts"
import { bareList } from "./plain-json.ts"

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

/** Calls as a JSON list after `[TOOL_CALLS]`, the format of Mistral. */
export const mistral: Dialect = {
  name: "mistral",
  openings: [toolCalls, bareList],
  instructions: "Write all calls as one JSON list after [TOOL_CALLS], at the end of the answer:",
  write: (tool, input) => `[TOOL_CALLS]${JSON.stringify([{ name: tool, arguments: input }])}`,
}
