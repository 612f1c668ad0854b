import { isRecord } from "../../../util/json.ts"
import type { Dialect, Opening, ReadContext, SyntheticTool } from "../dialect.ts"
import { type ParameterForm, readParameters } from "../read-parameters.ts"
import { type Reading, sees, skipSpace, takeAll, takes, takeWhile } from "../source.ts"
import { functionTag } from "./function-tag.ts"

const wrappers = ["function_calls", "tool_use", "minimax:tool_call"]
const invokeStart = '<invoke name="'

/** Calls as elements with their parameters as elements. */
export const xml: Dialect = {
  name: "xml",
  openings: [
    functionTag,
    { literal: invokeStart, explicit: true, read: readInvokes },
    ...wrappers.map(
      (name): Opening => ({
        literal: `<${name}>`,
        explicit: true,
        *read(context) {
          yield* skipSpace(context.source)
          if (!(yield* takes(context.source, invokeStart))) return "text"
          return yield* readInvokes(context)
        },
      }),
    ),
  ],
  toolOpenings: (tool) => ({
    literal: `<${tool.name}>`,
    explicit: false,
    read: (context) => readNamedElement(context, tool),
  }),
  instructions:
    "Write each call as an element, on lines of its own. Values stand as they are: nothing in them is escaped, lists and objects are JSON:",
  write: (tool, input) =>
    [`<function=${tool}>`, ...Object.entries(input).map(parameter), "</function>"].join("\n"),
}

/** Reads from behind the quote before the first name. */
function* readInvokes(context: ReadContext): Reading<"calls" | "text"> {
  const { source } = context
  let count = 0
  do {
    const name = yield* takeWhile(source, /[\w.:-]*/y)
    const isCall = (yield* takes(source, '"')) && (yield* takes(source, ">")) && name !== ""
    if (!isCall) return count > 0 ? "calls" : "text"
    yield* readParameters(context, name, invokeParameters)
    count += 1
    yield* skipSpace(source)
  } while (yield* takes(source, invokeStart))
  yield* takeAll(
    source,
    wrappers.map((name) => `</${name}>`),
  )
  return "calls"
}

const invokeParameters: ParameterForm = {
  *key({ source }) {
    if (!(yield* takes(source, '<parameter name="'))) return undefined
    const key = yield* takeWhile(source, /[^"<>\n]*/y)
    return (yield* takes(source, '">')) ? key : undefined
  },
  valueEnd: () => "</parameter>",
  end: ["</invoke>"],
}

/** An element named like the tool, its parameters named like the tool's: `<read><filePath>a.txt</filePath></read>`. */
function* readNamedElement(context: ReadContext, tool: SyntheticTool): Reading<"calls" | "text"> {
  const { source } = context
  const { properties } = tool.inputSchema
  const names = isRecord(properties) ? Object.keys(properties) : []
  const form: ParameterForm = {
    *key() {
      for (const name of names) if (yield* takes(source, `<${name}>`)) return name
      return undefined
    },
    valueEnd: (key) => `</${key}>`,
    end: [`</${tool.name}>`],
  }
  yield* skipSpace(source)
  let begins = yield* sees(source, `</${tool.name}>`)
  for (const name of names) begins ||= yield* sees(source, `<${name}>`)
  if (!begins) return "text"
  yield* readParameters(context, tool.name, form)
  return "calls"
}

function parameter([name, value]: [string, unknown]): string {
  const text = typeof value === "string" ? value : JSON.stringify(value)
  return `<parameter=${name}>\n${text}\n</parameter>`
}
