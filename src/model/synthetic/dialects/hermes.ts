import type { Dialect, Opening, ReadContext } from "../dialect.ts"
import { readObjectCalls } from "../read-object.ts"
import { type ParameterForm, readParameters } from "../read-parameters.ts"
import { readPython } from "../read-python.ts"
import { charAt, type Reading, sees, skipSpace, takeAll, takes, takeUntil, takeWhile } from "../source.ts"
import { bareObject } from "./bare-object.ts"
import { readFunctionTag } from "./function-tag.ts"

/** The tags around a call, of Hermes and Qwen first, and how other families write them. */
const tags: readonly [string, string][] = [
  ["<tool_call>", "</tool_call>"],
  ["<tool_calls>", "</tool_calls>"],
  ["<function_call>", "</function_call>"],
  ["<|tool_call|>", "<|/tool_call|>"],
  ["<|START_ACTION|>", "<|END_ACTION|>"],
]

/** Calls as JSON in `<tool_call>`, as Hermes, Qwen and many that learned from them write. */
export const hermes: Dialect = {
  name: "hermes",
  openings: [...tags.map(([literal, closing]) => tagOpening(literal, closing)), bareObject],
  instructions: "Write each call as JSON between tags, on lines of its own:",
  write: (tool, input) => `<tool_call>\n${JSON.stringify({ name: tool, arguments: input })}\n</tool_call>`,
}

function tagOpening(literal: string, closing: string): Opening {
  return {
    literal,
    explicit: true,
    *read(context) {
      const { source } = context
      const bodyStart = source.position
      yield* skipSpace(source)
      if (yield* takes(source, "```")) yield* takeWhile(source, /[a-z_]*\s*/y)
      if (!(yield* readBody(context, closing))) {
        source.position = bodyStart
        return yield* readUnknown(context, closing)
      }
      yield* takeAll(source, ["```", closing])
      return "calls"
    },
  }
}

/** False: nothing that is known for a call. */
function* readBody(context: ReadContext, closing: string): Reading<boolean> {
  const { source, tools } = context
  const first = yield* charAt(source)
  if (first === "{" || first === "[") return yield* readObjectCalls(context, { stop: closing })
  if (yield* takes(source, "<function=")) return (yield* readFunctionTag(context)) === "calls"
  const start = source.position
  const name = yield* takeWhile(source, /[\w.-]*/y)
  if (name === "") return false
  if ((yield* charAt(source)) === "(") {
    source.position = start
    return (yield* readPython(context, true)) === "calls"
  }
  yield* skipSpace(source)
  const isCall = (yield* sees(source, "<arg_key>")) || (tools.has(name) && (yield* sees(source, closing)))
  if (isCall) yield* readParameters(context, name, argumentPairs(closing))
  return isCall
}

/** GLM's parameters: `<arg_key>path</arg_key><arg_value>a.txt</arg_value>`. */
function argumentPairs(closing: string): ParameterForm {
  return {
    *key({ source }) {
      if (!(yield* takes(source, "<arg_key>"))) return undefined
      const key = yield* takeUntil(source, "</arg_key>")
      yield* skipSpace(source)
      return key !== undefined && (yield* takes(source, "<arg_value>")) ? key.trim() : undefined
    },
    valueEnd: () => "</arg_value>",
    end: [closing],
  }
}

/** A tag that begins a line and is closed was meant as a call; any other is somebody's word for it. */
function* readUnknown(context: ReadContext, closing: string): Reading<"calls" | "text"> {
  const { source, sink } = context
  if (!context.atLineStart || /[ \t]/.test(yield* charAt(source))) return "text"
  const body = yield* takeUntil(source, closing)
  if (body === undefined) return "text"
  const text = source.text.slice(context.start, source.position)
  sink.malformed({ text, reason: "holds no call between its tags" })
  return "calls"
}
