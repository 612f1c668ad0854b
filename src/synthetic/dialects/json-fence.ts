import type { Dialect, Opening, ReadContext } from "../dialect.ts"
import { readObjectCalls } from "../read-json.ts"
import { readPython } from "../read-python.ts"
import { charAt, type Reading, takeAll, takeWhile } from "../source.ts"
import { bareObject, enclosed, listTag } from "./plain-json.ts"

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
