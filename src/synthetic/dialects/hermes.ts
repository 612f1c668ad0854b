import type { Dialect, Opening, ReadContext } from "../dialect.ts"
import { readArguments, readObjectCalls } from "../read-json.ts"
import { type ParameterForm, readParameters } from "../read-parameters.ts"
import { readPython } from "../read-python.ts"
import { charAt, type Reading, sees, skipSpace, takeAll, takes, takeUntil, takeWhile } from "../source.ts"
import { bareObject, listTag, startsLikeCall } from "./plain-json.ts"
import { takeElement } from "./xml.ts"

/** Marks that stand around calls, however those are written. */
interface Tag {
  opening: string
  closing: string
  /** What else is in it was meant as a call too, and went wrong. */
  onlyCalls: boolean
}

const tags: readonly Tag[] = [
  // Hermes and Qwen first, and many that learned from them
  ...["tool_call", "tool_calls", "function_call", "longcat_tool_call", "TOOLCALL"].map((name) => ({
    opening: `<${name}>`,
    closing: `</${name}>`,
    onlyCalls: true,
  })),
  // MiniMax, Seed, OLMo, DeepSeek since 3.2, clients with prompts of their own
  ...[
    "function_calls",
    "tool_use",
    "minimax:tool_call",
    "seed:tool_call",
    "｜DSML｜function_calls",
    "｜DSML｜tool_calls",
  ].map((name) => ({ opening: `<${name}>`, closing: `</${name}>`, onlyCalls: false })),
  // Granite and Phi, Command, InternLM, Apertus, LFM
  { opening: "<|tool_call|>", closing: "<|/tool_call|>", onlyCalls: true },
  { opening: "<|START_ACTION|>", closing: "<|END_ACTION|>", onlyCalls: true },
  { opening: "<|action_start|><|plugin|>", closing: "<|action_end|>", onlyCalls: true },
  { opening: "<|tools_prefix|>", closing: "<|tools_suffix|>", onlyCalls: true },
  { opening: "<|tool_call_start|>", closing: "<|tool_call_end|>", onlyCalls: true },
]

/** Phi's word before a list. */
const phiList: Opening = {
  literal: "functools[",
  explicit: true,
  *read(context) {
    context.source.position -= 1
    return (yield* startsLikeCall(context)) && (yield* readObjectCalls(context)) ? "calls" : "text"
  },
}

/** Tags with calls in them. */
const tagOpenings: readonly Opening[] = [...tags.map(openingOf), phiList]

/** What may be left of a tag behind the calls in it. */
export const tagClosings: readonly string[] = tags.map(({ closing }) => closing)

function openingOf(tag: Tag): Opening {
  const { opening, closing } = tag
  return {
    literal: opening,
    explicit: true,
    *read(context) {
      const { source } = context
      const bodyStart = source.position
      yield* skipSpace(source)
      // Twice is a common slip.
      if (yield* takes(source, opening)) yield* skipSpace(source)
      if (yield* takes(source, "```")) yield* takeWhile(source, /[a-z_]*\s*/y)
      if (!(yield* readBody(context, closing))) {
        source.position = bodyStart
        return yield* readUnknown(context, tag)
      }
      yield* takeAll(source, ["```", closing])
      return "calls"
    },
  }
}

/** False: nothing that is known for a call. */
function* readBody(context: ReadContext, closing: string): Reading<boolean> {
  const { source } = context
  const start = source.position
  const first = yield* charAt(source)
  if (first === "[" && (yield* readPython(context, true)) === "calls") return true
  source.position = start
  if (first === "{" || first === "[") return yield* readObjectCalls(context, { stop: closing })
  if (first !== "<") return yield* readNamed(context, closing)
  if (yield* takes(source, "<name>")) return yield* readNameElement(context, closing)
  return yield* takeElement(context)
}

/** A name outside of what gives its arguments: Python's brackets, an object, or GLM's pairs. */
function* readNamed(context: ReadContext, closing: string): Reading<boolean> {
  const { source, tools } = context
  const start = source.position
  const name = yield* takeWhile(source, /[\w.-]*/y)
  if (name === "") return false
  if ((yield* charAt(source)) === "(") {
    source.position = start
    return (yield* readPython(context, true)) === "calls"
  }
  yield* skipSpace(source)
  if (tools.has(name) && (yield* charAt(source)) === "{") {
    yield* readArguments(context, name, closing)
    return true
  }
  const pairs = argumentPairs(closing)
  const isCall = (yield* beginsPair(context, pairs)) || (tools.has(name) && (yield* sees(source, closing)))
  if (isCall) yield* readParameters(context, name, pairs)
  return isCall
}

function* beginsPair(context: ReadContext, pairs: ParameterForm): Reading<boolean> {
  const start = context.source.position
  const key = yield* pairs.key(context)
  context.source.position = start
  return key !== undefined
}

/** `<name>read</name><arguments>{…}</arguments>`, as some clients ask for. */
function* readNameElement(context: ReadContext, closing: string): Reading<boolean> {
  const { source } = context
  const name = yield* takeUntil(source, "</name>")
  yield* skipSpace(source)
  if (name === undefined || !(yield* takes(source, "<arguments>"))) return false
  yield* skipSpace(source)
  if ((yield* charAt(source)) !== "{") return false
  yield* readArguments(context, name.trim(), closing)
  yield* takeAll(source, ["</arguments>"])
  return true
}

/**
 * GLM's parameters: `<arg_key>path</arg_key><arg_value>a.txt</arg_value>`. The beginning of a key or a value is left out
 * at times.
 */
function argumentPairs(closing: string): ParameterForm {
  return {
    *key({ source }) {
      yield* takes(source, "<arg_key>")
      const key = yield* takeWhile(source, /[^<>{}\n]{0,100}/y)
      if (!(yield* takes(source, "</arg_key>"))) return undefined
      yield* skipSpace(source)
      yield* takes(source, "<arg_value>")
      return key.trim()
    },
    valueEnd: () => "</arg_value>",
    begin: "<arg_key>",
    end: [closing],
  }
}

/** A tag that begins a line and is closed was meant as a call; any other is somebody's word for it. */
function* readUnknown(context: ReadContext, { closing, onlyCalls }: Tag): Reading<"calls" | "text" | "mark"> {
  const { source, sink } = context
  const space = yield* takeWhile(source, /\s*/y)
  if (context.followsCall && (yield* charAt(source)) === "") return "mark"
  if (!onlyCalls || !context.atLineStart || /^[ \t]/.test(space)) return "text"
  const body = yield* takeUntil(source, closing)
  if (body === undefined) return "text"
  const text = source.text.slice(context.start, source.position)
  sink.malformed({ text, reason: "holds no call between its tags" })
  return "calls"
}

/** Calls as JSON in `<tool_call>`, as Hermes, Qwen and many that learned from them write. */
export const hermes: Dialect = {
  name: "hermes",
  openings: [...tagOpenings, listTag, bareObject],
  instructions: "Write each call as JSON between tags, on lines of its own:",
  write: (tool, input) => `<tool_call>\n${JSON.stringify({ name: tool, arguments: input })}\n</tool_call>`,
}
