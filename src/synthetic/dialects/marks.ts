import { isRecord } from "../../util/json.ts"
import { callOfUnknown, findTool, reportCall } from "../call-value.ts"
import type { Opening, ReadContext, SyntheticTool } from "../dialect.ts"
import { readLooseValue } from "../loose-json.ts"
import { readArguments, readNoArguments, readObjectCall } from "../read-json.ts"
import { charAt, type Reading, sees, takeAll, takeUntil, takeWhile } from "../source.ts"
import { tagClosings } from "./hermes.ts"

/** A format for calls between special marks, in which the name precedes the arguments. */
interface MarkedCall {
  openings: readonly string[]
  /** Matches the text between the opening and the arguments. The first group is the tool's name. */
  header: RegExp
  ends: readonly string[]
  /**
   * True if the opening can be ordinary text. If so, the opening is recognized only if the exact name of an offered
   * tool follows.
   */
  exactName?: boolean
  /** True if the opening is recognized only at the beginning of a line. */
  isWord?: boolean
  /** True if the opening is dropped when no call follows. */
  isMark?: boolean
  /** Matches an opening and the text after it that are both dropped if no call follows. */
  dropped?: RegExp
}

const markedCalls: readonly MarkedCall[] = [
  // Kimi, which sometimes omits the marks of a single call
  ...["<|tool_call_begin|>", "<|tool_calls_section_begin|>", "<|tool_call_section_begin|>"].map(
    (opening) => ({
      openings: [opening],
      header: /^\s*([\w.:-]+)\s*<\|tool_call_argument_begin\|>\s*/,
      ends: ["<|tool_call_end|>"],
      isMark: opening !== "<|tool_call_begin|>",
    }),
  ),
  // DeepSeek before and since 3.1
  {
    openings: spellings("tool call begin"),
    header:
      /^(?:function<[｜|]tool[▁_]sep[｜|]>)?([\w-]+)(?:<[｜|]tool[▁_]sep[｜|]>)?\s*(?:```(?:json)?\s*)?/,
    ends: ["```", ...spellings("tool call end")],
  },
  // gpt-oss: the recipient comes before or after the channel, on any channel
  {
    openings: ["<|start|>assistant", "<|channel|>commentary", "<|channel|>analysis", "<|channel|>final"],
    header:
      /^(?:<\|(?:channel|constrain)\|>|[\w ?])*? ?to=(?:functions\.)?([\w-]+)(?:<\|(?:channel|constrain)\|>|[\w\s])*<\|message\|>\s*/,
    ends: ["<|call|>", "<|end|>"],
    // The channel of the answer itself
    dropped: /^(?:<\|start\|>assistant)?<\|channel\|>final ?(?:<\|constrain\|>\w+)?<\|message\|>/,
  },
  // Functionary
  { openings: [">>>"], header: /^([\w-]+)\n/, ends: [], exactName: true },
  { openings: ["<|recipient|>"], header: /^\s*([\w-]+)\s*<\|content\|>\s*/, ends: ["<|stop|>"] },
  // Small models that use the `hermes` dialect
  { openings: ['<tool_call name="'], header: /^([\w.-]+)"\s*>\s*/, ends: ["</tool_call>"] },
  // ReAct prompts
  {
    openings: ["Action:"],
    header: /^[ \t]*([\w-]+)[ \t]*\n\s*Action Input:\s*(?:```(?:json)?\s*)?/,
    ends: ["```"],
    exactName: true,
    isWord: true,
  },
]

/** Openings that models write in any dialect, although no prompt asks for them. */
export const markOpenings: readonly Opening[] = [
  ...new Set(markedCalls.flatMap(({ openings }) => openings)),
].map((literal) => {
  const forms = markedCalls.filter(({ openings }) => openings.includes(literal))
  return {
    literal,
    explicit: !forms.every(({ isWord }) => isWord),
    read: (context) => readForms(context, forms),
  }
})

const longestHeader = 200

function* readForms(context: ReadContext, forms: readonly MarkedCall[]): Reading<"calls" | "text" | "mark"> {
  const { source } = context
  const start = source.position
  const text = yield* takeWhile(source, new RegExp(`[^{}]{0,${longestHeader}}`, "y"))
  for (const { header, ends, exactName = false } of forms) {
    const [whole = "", name] = header.exec(text) ?? []
    source.position = start + whole.length
    if (name === undefined || (exactName && !context.tools.has(name))) continue
    if (yield* readMarked(context, name, ends)) return "calls"
  }
  source.position = start
  const opening = source.text.slice(context.start, start)
  for (const { dropped } of forms) {
    const found = dropped?.exec(opening + text)?.[0]
    if (found === undefined) continue
    source.position = context.start + found.length
    return "mark"
  }
  return forms.some(({ isMark }) => isMark) ? "mark" : "text"
}

/** Reads a call after its header. Returns false if neither arguments nor the end of the call follow. */
function* readMarked(context: ReadContext, id: string, ends: readonly string[]): Reading<boolean> {
  const { source, tools } = context
  const last = ends.at(-1)
  if ((yield* charAt(source)) === "{") {
    // An id of this form comes from another API. In that case, the arguments contain the name.
    if (/^(call_|chatcmpl-tool-)/.test(id)) yield* readObjectCall(context, { stop: last })
    else yield* readArguments(context, nameOf(id, tools), last)
  } else {
    let ended = false
    for (const end of ends) ended ||= yield* sees(source, end)
    if (!ended) return false
    readNoArguments(context, nameOf(id, tools))
  }
  yield* takeAll(source, ends)
  return true
}

/** Returns the tool name in an id such as Kimi's `functions.read:0`, or in a variant of such an id. */
function nameOf(id: string, tools: ReadonlyMap<string, SyntheticTool>): string {
  const bare = id.replace(/^functions[._]?/, "")
  const candidates = [id, bare, ...[id, bare].map((name) => name.replace(/[:_]?\d+$/, ""))]
  return candidates.find((name) => tools.has(name)) ?? id.replace(/^functions\./, "").replace(/:\d+$/, "")
}

/** Marks used by FunctionGemma and Gemma 4, as in `call:read{filePath:<escape>a.txt<escape>}`. */
const forms = [
  { opening: "<start_function_call>call:", quote: "<escape>", end: "<end_function_call>" },
  { opening: "<|tool_call>call:", quote: '<|"|>', end: "<tool_call|>" },
]

/** Openings of FunctionGemma and Gemma 4. */
export const gemmaOpenings: readonly Opening[] = forms.map(({ opening, quote, end }) => ({
  literal: opening,
  explicit: true,
  read: (context) => readCall(context, quote, end),
}))

function* readCall(context: ReadContext, quote: string, end: string): Reading<"calls" | "text"> {
  const { source, sink, tools } = context
  const name = yield* takeWhile(source, /[\w.-]*/y)
  const written = yield* takeUntil(source, end)
  const cut = written === undefined && source.cut
  const body = written ?? source.text.slice(source.position)
  if (name === "" || !body.startsWith("{")) return "text"
  if (written === undefined) source.position = source.text.length
  const text = source.text.slice(context.start, source.position)
  const found = findTool(name, tools)
  const read = readLooseValue(asJson(body, quote))
  if (!found.ok || !read.ok || !isRecord(read.value) || cut) {
    const reason = found.ok ? (cut ? "is incomplete" : "has arguments that cannot be read") : found.reason
    const unknown = !found.ok && read.ok && !cut ? callOfUnknown(name, read.value) : undefined
    sink.malformed({ text, reason, tool: found.ok ? found.tool : undefined, unknown, cut })
    return "calls"
  }
  reportCall(sink, { tool: found.tool, input: JSON.stringify(read.value), repaired: found.repaired })
  return "calls"
}

/** Converts each text between two quote marks to a JSON string. */
function asJson(body: string, quote: string): string {
  return body
    .split(quote)
    .map((piece, index) => (index % 2 === 1 ? JSON.stringify(piece) : piece))
    .join("")
}

/**
 * Returns all spellings of a DeepSeek mark. Some servers and distilled models write plain bars and underscores in the
 * mark.
 */
function spellings(mark: string): string[] {
  return ["｜", "|"].flatMap((bar) => ["▁", "_"].map((gap) => `<${bar}${mark.replaceAll(" ", gap)}${bar}>`))
}

/** Marks that precede calls and have no other meaning. */
const marksBefore = spellings("tool calls begin")

/** Marks that end calls or the answer. They are dropped after a call. */
const marksAfter = [
  ...tagClosings,
  ...spellings("tool call end"),
  ...spellings("tool calls end"),
  ...["<|tool_calls_section_end|>", "<|tool_call_section_end|>", "</function>"],
  ...["<|im_end|>", "<|eot_id|>", "<|eom_id|>", "</s>", "<｜end▁of▁sentence｜>"],
]

/** Marks that begin a tool result. A tool result in an answer is always invented by the model. */
const results = [
  "<tool_response",
  "<function_results>",
  "<|tool_response>",
  "<|observation|>",
  "<｜tool▁outputs▁begin｜>",
]

/** Openings of marks around calls, which are dropped. */
export const surroundingMarks: readonly Opening[] = [
  ...marksBefore.map((literal) => mark(literal, () => true)),
  ...[...new Set(marksAfter)].map((literal) =>
    mark(literal, ({ afterCall, followsCall, atLineStart }) => followsCall || (afterCall && atLineStart)),
  ),
  ...["<|return|>", "<|end|>"].map(lastMark),
  ...results.map((literal) => result(literal, true, ({ afterCall }) => afterCall)),
  // This literal can be ordinary text.
  result("Observation:", false, ({ followsCall }) => followsCall),
]

/** Returns an opening that drops the literal if it is a mark and treats it as text otherwise. */
function mark(literal: string, isMark: (context: ReadContext) => boolean): Opening {
  return {
    literal,
    explicit: true,
    // biome-ignore lint/correctness/useYield: the result is known at once
    *read(context) {
      return isMark(context) ? "mark" : "text"
    },
  }
}

/** Returns an opening that drops the literal at the end of the answer. */
function lastMark(literal: string): Opening {
  return {
    literal,
    explicit: true,
    *read({ source }) {
      yield* takeWhile(source, /\s*/y)
      return (yield* charAt(source)) === "" ? "mark" : "text"
    },
  }
}

/** Returns an opening that drops an invented result and all text after it, since that text depends on the result. */
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
