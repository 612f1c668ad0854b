import type { Opening } from "../dialect.ts"
import { readArguments } from "../read-arguments.ts"
import { charAt, skipSpace, takeAll, takeWhile } from "../source.ts"

/** A call between marks of a model's own, its name before its arguments. */
interface MarkedCall {
  opening: string
  /** What stands between the opening and the arguments' brace; the tool's name is its first group. */
  header: RegExp
  ends: readonly string[]
}

const markedCalls: readonly MarkedCall[] = [
  // Kimi
  {
    opening: "<|tool_call_begin|>",
    header: /^\s*(?:functions\.)?([\w-]+)(?::\d+)?\s*<\|tool_call_argument_begin\|>\s*$/,
    ends: ["<|tool_call_end|>"],
  },
  // DeepSeek, before and since 3.1
  {
    opening: "<｜tool▁call▁begin｜>",
    header: /^(?:function<｜tool▁sep｜>)?([\w-]+)(?:<｜tool▁sep｜>)?\s*(?:```json\s*)?$/,
    ends: ["```", "<｜tool▁call▁end｜>"],
  },
  // gpt-oss
  {
    opening: "<|channel|>commentary to=",
    header: /^(?:functions\.)?([\w-]+)\s*(?:<\|constrain\|>\s*json\s*)?<\|message\|>\s*$/,
    ends: ["<|call|>"],
  },
]

/** What stands around the calls of one answer and says nothing. */
const noise = [
  "<|tool_calls_section_begin|>",
  "<|tool_calls_section_end|>",
  "<｜tool▁calls▁begin｜>",
  "<｜tool▁calls▁end｜>",
]

const longestHeader = 200

/**
 * A result that the model made up: with all that follows, which rests on it, it is left out. Only the call before it
 * counts.
 */
const inventedResult: Opening = {
  literal: "<tool_response",
  explicit: true,
  *read({ source, afterCall }) {
    if (!afterCall) return "text"
    while (!source.ended) yield
    source.position = source.text.length
    return "calls"
  },
}

/** Marks that models write by habit, whatever they were told. No model is told to. */
export const habitualMarks: readonly Opening[] = [
  inventedResult,
  ...markedCalls.map(openingOf),
  ...noise.map(
    (literal): Opening => ({
      literal,
      explicit: true,
      *read({ source }) {
        yield* skipSpace(source)
        return "calls"
      },
    }),
  ),
]

function openingOf({ opening, header, ends }: MarkedCall): Opening {
  return {
    literal: opening,
    explicit: true,
    *read(context) {
      const { source } = context
      const text = yield* takeWhile(source, new RegExp(`[^{}]{0,${longestHeader}}`, "y"))
      const name = header.exec(text)?.[1]
      if (name === undefined || (yield* charAt(source)) !== "{") return "text"
      yield* readArguments(context, name, ends.at(-1))
      yield* takeAll(source, ends)
      return "calls"
    },
  }
}
