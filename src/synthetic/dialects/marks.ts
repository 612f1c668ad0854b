import type { Opening, ReadContext, SyntheticTool } from "../dialect.ts"
import { readArguments, readNoArguments } from "../read-arguments.ts"
import { readObjectCall } from "../read-object.ts"
import { charAt, type Reading, sees, takeAll, takeWhile } from "../source.ts"
import { spellings } from "./leftovers.ts"

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
