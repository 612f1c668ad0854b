import { isRecord } from "../../util/json.ts"
import { callOfUnknown, findTool } from "../call-value.ts"
import type { Opening, ReadContext, SyntheticTool } from "../dialect.ts"
import { readLooseValue } from "../loose-value.ts"
import { readArguments, readNoArguments, readObjectCall } from "../read-json.ts"
import { charAt, type Reading, sees, takeAll, takeUntil, takeWhile } from "../source.ts"
import { tagClosings } from "./hermes.ts"

/** A call between marks of a model's own, its name before its arguments. */
interface MarkedCall {
  openings: readonly string[]
  /** What stands between the opening and the arguments; the tool's name is its first group. */
  header: RegExp
  ends: readonly string[]
  /** What anyone may write: only with the exact name of an offered tool. */
  exactName?: boolean
  /** And only at the beginning of a line. */
  isWord?: boolean
  /** Where no call comes next, the opening says nothing. */
  isMark?: boolean
}

const markedCalls: readonly MarkedCall[] = [
  // Kimi; the marks of the only call are left out at times
  ...["<|tool_call_begin|>", "<|tool_calls_section_begin|>", "<|tool_call_section_begin|>"].map(
    (opening) => ({
      openings: [opening],
      header: /^\s*([\w.:-]+)\s*<\|tool_call_argument_begin\|>\s*/,
      ends: ["<|tool_call_end|>"],
      isMark: opening !== "<|tool_call_begin|>",
    }),
  ),
  // DeepSeek, before and since 3.1
  {
    openings: spellings("tool call begin"),
    header:
      /^(?:function<[｜|]tool[▁_]sep[｜|]>)?([\w-]+)(?:<[｜|]tool[▁_]sep[｜|]>)?\s*(?:```(?:json)?\s*)?/,
    ends: ["```", ...spellings("tool call end")],
  },
  // gpt-oss: the recipient may stand before or behind the channel, on any channel
  {
    openings: ["<|start|>assistant", "<|channel|>commentary", "<|channel|>analysis"],
    header:
      /^(?:<\|(?:channel|constrain)\|>|[\w ?])*? ?to=(?:functions\.)?([\w-]+)(?:<\|(?:channel|constrain)\|>|[\w\s])*<\|message\|>\s*/,
    ends: ["<|call|>", "<|end|>"],
  },
  // Functionary
  { openings: [">>>"], header: /^([\w-]+)\n/, ends: [], exactName: true },
  { openings: ["<|recipient|>"], header: /^\s*([\w-]+)\s*<\|content\|>\s*/, ends: ["<|stop|>"] },
  // Small models that were told Hermes' form
  { openings: ['<tool_call name="'], header: /^([\w.-]+)"\s*>\s*/, ends: ["</tool_call>"] },
  // What chains of agents ask for
  {
    openings: ["Action:"],
    header: /^[ \t]*([\w-]+)[ \t]*\n\s*Action Input:\s*(?:```(?:json)?\s*)?/,
    ends: ["```"],
    exactName: true,
    isWord: true,
  },
]

/** Marks that models write by habit, whatever they were told. No model is told to. */
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
  return forms.some(({ isMark }) => isMark) ? "mark" : "text"
}

/** False where neither arguments nor the call's end come next. */
function* readMarked(context: ReadContext, id: string, ends: readonly string[]): Reading<boolean> {
  const { source, tools } = context
  const last = ends.at(-1)
  if ((yield* charAt(source)) === "{") {
    // An id of another API's: the name is among the arguments.
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

/** The tool in Kimi's ids: `functions.read:0`, and as they come back when clients or models changed them. */
function nameOf(id: string, tools: ReadonlyMap<string, SyntheticTool>): string {
  const bare = id.replace(/^functions[._]?/, "")
  const candidates = [id, bare, ...[id, bare].map((name) => name.replace(/[:_]?\d+$/, ""))]
  return candidates.find((name) => tools.has(name)) ?? id.replace(/^functions\./, "").replace(/:\d+$/, "")
}

/** Marks of Gemma's own: `call:read{filePath:<escape>a.txt<escape>}`, and the same with others since version 4. */
const forms = [
  { opening: "<start_function_call>call:", quote: "<escape>", end: "<end_function_call>" },
  { opening: "<|tool_call>call:", quote: '<|"|>', end: "<tool_call|>" },
]

/** Calls of FunctionGemma and Gemma 4. */
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
    const reason = found.ok ? (cut ? "is not whole" : "gives no arguments that can be read") : found.reason
    const unknown = !found.ok && read.ok && !cut ? callOfUnknown(name, read.value) : undefined
    sink.malformed({
      text,
      reason,
      ...(found.ok && { tool: found.tool }),
      ...(unknown && { unknown }),
      ...(cut && { cut }),
    })
    return "calls"
  }
  const input = JSON.stringify(read.value)
  sink.start(found.tool)
  sink.delta(input)
  sink.call({ tool: found.tool, input, repaired: found.repaired })
  return "calls"
}

/** What stands between two quoting marks is a text, character by character. */
function asJson(body: string, quote: string): string {
  return body
    .split(quote)
    .map((piece, index) => (index % 2 === 1 ? JSON.stringify(piece) : piece))
    .join("")
}

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
