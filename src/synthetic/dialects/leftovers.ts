import type { Opening, ReadContext } from "../dialect.ts"
import { tagClosings } from "./tags.ts"

/** DeepSeek's mark as it is, and as servers and distilled models write it: with plain bars, with underscores. */
export function spellings(mark: string): string[] {
  return ["｜", "|"].flatMap((bar) => ["▁", "_"].map((gap) => `<${bar}${mark.replaceAll(" ", gap)}${bar}>`))
}

/** What comes before calls and says nothing. */
const before = spellings("tool calls begin")

/** What is left of calls, or ends the answer, and says nothing behind a call. */
const behind = [
  ...tagClosings,
  ...spellings("tool call end"),
  ...spellings("tool calls end"),
  ...["<|tool_calls_section_end|>", "<|tool_call_section_end|>", "</function>"],
  ...["<|im_end|>", "<|eot_id|>", "<|eom_id|>", "</s>", "<｜end▁of▁sentence｜>"],
]

/** How results begin. What a model writes of one itself it made up. */
const results = ["<tool_response", "<|tool_response>", "<|observation|>", "<｜tool▁outputs▁begin｜>"]

/** What is no call and stands around calls. */
export const leftovers: readonly Opening[] = [
  ...before.map((literal) => mark(literal, () => true)),
  ...[...new Set(behind)].map((literal) =>
    mark(literal, ({ afterCall, followsCall, atLineStart }) => followsCall || (afterCall && atLineStart)),
  ),
  ...results.map((literal) => result(literal, true, ({ afterCall }) => afterCall)),
  // A word that anyone may write
  result("Observation:", false, ({ followsCall }) => followsCall),
]

/** What is left out where it is a mark, and text where not. */
function mark(literal: string, isMark: (context: ReadContext) => boolean): Opening {
  return {
    literal,
    explicit: true,
    // biome-ignore lint/correctness/useYield: it knows at once
    *read(context) {
      return isMark(context) ? "mark" : "text"
    },
  }
}

/** A result that the model made up is left out with all that follows, which rests on it: only the call before it counts. */
function result(literal: string, explicit: boolean, isResult: (context: ReadContext) => boolean): Opening {
  return {
    literal,
    explicit,
    *read(context) {
      const { source } = context
      if (!isResult(context)) return "text"
      while (!source.ended) yield
      source.position = source.text.length
      return "mark"
    },
  }
}
