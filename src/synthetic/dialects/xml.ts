import { isRecord } from "../../util/json.ts"
import type { Dialect, Opening, ReadContext, SyntheticTool } from "../dialect.ts"
import { readArguments } from "../read-json.ts"
import { type ParameterForm, readParameters } from "../read-parameters.ts"
import { charAt, type Reading, sees, skipSpace, takeAll, takes, takeWhile } from "../source.ts"

/** How a family of models writes calls whose parameters are elements. Names follow what is given here. */
interface ElementForm {
  opening: string
  parameter: string
  parameterEnd: string
  /** The first ends the element, any other what stands around it. */
  ends: readonly [string, ...string[]]
}

const forms: readonly ElementForm[] = [
  // Qwen Coder and those that learned from it; Llama 3 puts a JSON object in the place of parameters.
  {
    opening: "<function=",
    parameter: "<parameter=",
    parameterEnd: "</parameter>",
    ends: ["</function>", "</tool_call>"],
  },
  { opening: "<function name=", parameter: "<param name=", parameterEnd: "</param>", ends: ["</function>"] },
  // MiniMax, DeepSeek since 3.2, Step
  ...[
    ["", ""],
    ["", "｜DSML｜"],
    ["<｜tool_call_begin｜>function<｜tool_sep｜>", "steptml:"],
  ].map(
    ([before, prefix]): ElementForm => ({
      opening: `${before}<${prefix}invoke name=`,
      parameter: `<${prefix}parameter name=`,
      parameterEnd: `</${prefix}parameter>`,
      ends: [`</${prefix}invoke>`],
    }),
  ),
]

/** Calls as elements, wherever they stand. */
export const elementOpenings: readonly Opening[] = forms.map((form) => ({
  literal: form.opening,
  explicit: true,
  read: (context) => readElement(context, form),
}))

/** Reads an element, if one comes next. */
export function* takeElement(context: ReadContext): Reading<boolean> {
  for (const { literal, read } of elementOpenings) {
    if (yield* takes(context.source, literal)) return (yield* read(context)) === "calls"
  }
  return false
}

function* readElement(context: ReadContext, form: ElementForm): Reading<"calls" | "text"> {
  const { source } = context
  const name = yield* takesName(context, /[\w.:-]*/y)
  yield* takeWhile(source, /[^<>\n]*/y)
  if (!name || !(yield* takes(source, ">"))) return "text"
  yield* skipSpace(source)
  const [end] = form.ends
  if ((yield* charAt(source)) === "{") {
    yield* readArguments(context, name, end)
    // Closed by another beginning is a slip of small models.
    yield* takeAll(source, [end, end.replace("/", "")])
    return "calls"
  }
  if (!(yield* sees(source, form.parameter)) && !(yield* sees(source, end))) return "text"
  yield* readParameters(context, name, parametersOf(form))
  return "calls"
}

function parametersOf({ parameter, parameterEnd, ends }: ElementForm): ParameterForm {
  return {
    *key(context) {
      const { source } = context
      if (!(yield* takes(source, parameter))) return undefined
      const key = yield* takesName(context, /[^<>"'=\n]*/y)
      // An equals sign before the value, in place of the bracket, is a slip of Qwen Coder's.
      if (!(yield* takes(source, "="))) {
        yield* takeWhile(source, /[^<>\n]*/y)
        if (!(yield* takes(source, ">"))) return undefined
      }
      return key.trim()
    },
    valueEnd: () => parameterEnd,
    begin: parameter,
    end: ends,
  }
}

/** A name, with or without quotes. */
function* takesName({ source }: ReadContext, pattern: RegExp): Reading<string> {
  const quote = yield* takeWhile(source, /["']?/y)
  const name = yield* takeWhile(source, pattern)
  if (quote !== "") yield* takes(source, quote)
  return name
}

/** Calls as elements with their parameters as elements. */
export const xml: Dialect = {
  name: "xml",
  openings: elementOpenings,
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
    begin: "<",
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
