import { isRecord } from "../../util/json.ts"
import { callOfUnknown, findTool } from "../call-value.ts"
import type { Opening, ReadContext } from "../dialect.ts"
import { readLooseValue } from "../loose-value.ts"
import { type Reading, takeUntil, takeWhile } from "../source.ts"

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
