import type { Dialect, Opening, ReadContext } from "../dialect.ts"
import { readArguments, readObjectCalls } from "../read-json.ts"
import { type ParameterForm, readParameters } from "../read-parameters.ts"
import { readPython } from "../read-python.ts"
import { charAt, type Reading, sees, skipSpace, takeAll, takes, takeUntil, takeWhile } from "../source.ts"
import { bareObject, listTag, startsLikeCall } from "./json.ts"
import { takeElement } from "./xml.ts"

/** A pair of tags that surrounds calls in any format. */
interface Tag {
  opening: string
  closing: string
  /**
   * Whether the tags may contain only calls. If true and the opening tag starts a line, any other content is reported
   * as a malformed call. In all other cases, it is text.
   */
  onlyCalls: boolean
}

const tags: readonly Tag[] = [
  // Hermes, Qwen and models derived from them
  ...["tool_call", "tool_calls", "function_call", "longcat_tool_call", "TOOLCALL"].map((name) => ({
    opening: `<${name}>`,
    closing: `</${name}>`,
    onlyCalls: true,
  })),
  // MiniMax, Seed, OLMo, DeepSeek since 3.2, clients with their own prompts
  ...[
    "function_calls",
    "antml:function_calls",
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

/** The mark that Phi writes before a list. */
const phiList: Opening = {
  literal: "functools[",
  explicit: true,
  *read(context) {
    context.source.position -= 1
    return (yield* startsLikeCall(context)) && (yield* readObjectCalls(context)) ? "calls" : "text"
  },
}

/** Openings of all tags, and Phi's mark. */
const tagOpenings: readonly Opening[] = [...tags.map(openingOf), phiList]

/** Closing tags that may remain after calls. */
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
      // Models sometimes write the tag twice.
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

/** Reads the content of a tag. Returns false if the content is not a call. */
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

/** Reads a name and its arguments, which are Python arguments, an object, or GLM's key-value pairs. */
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

/** Reads `<name>read</name><arguments>{…}</arguments>`, a format that some clients use. */
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
 * Returns GLM's parameter format: `<arg_key>path</arg_key><arg_value>a.txt</arg_value>`. The model sometimes omits the
 * opening tag of a key or value.
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

/**
 * Reports a closed tag without a call as a malformed call if its content must be a call and the tag begins a line. A
 * tag that surrounds another tag is a mark, and so is a tag without a call at the end of the answer, after a call. Any
 * other tag without a call is text.
 */
function* readUnknown(context: ReadContext, { closing, onlyCalls }: Tag): Reading<"calls" | "text" | "mark"> {
  const { source, sink } = context
  const space = yield* takeWhile(source, /\s*/y)
  // The tag surrounds calls with their own tags.
  for (const { opening } of tags) if (yield* sees(source, opening)) return "mark"
  if (context.followsCall && (yield* charAt(source)) === "") return "mark"
  if (!onlyCalls || !context.atLineStart || /^[ \t]/.test(space)) return "text"
  const body = yield* takeUntil(source, closing)
  if (body === undefined) return "text"
  const text = source.text.slice(context.start, source.position)
  sink.malformed({ text, reason: "contains no call between its tags" })
  return "calls"
}

/** Calls as JSON in `<tool_call>` tags, the format used by Hermes, Qwen, and models derived from them. */
export const hermes: Dialect = {
  name: "hermes",
  openings: [...tagOpenings, listTag, bareObject],
  instructions: "Write each call as JSON between tags, starting on a new line:",
  write: (tool, input) => `<tool_call>\n${JSON.stringify({ name: tool, arguments: input })}\n</tool_call>`,
}
