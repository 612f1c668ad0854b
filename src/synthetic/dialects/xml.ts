import { isRecord } from "../../util/json.ts"
import type { Dialect, Opening, ReadContext, SyntheticTool } from "../dialect.ts"
import { readArguments } from "../read-json.ts"
import { type ParameterForm, readParameters } from "../read-parameters.ts"
import { charAt, type Reading, sees, skipSpace, takeAll, takes, takeWhile } from "../source.ts"

/** A format in which the parameters of a call are elements. A name follows both `opening` and `parameter`. */
interface ElementForm {
  opening: string
  parameter: string
  parameterEnd: string
  /** Closing tag of the element, followed by the closing tags around it. */
  ends: readonly [string, ...string[]]
}

const forms: readonly ElementForm[] = [
  // Qwen Coder and models derived from it. Llama 3 writes a JSON object instead of parameters.
  {
    opening: "<function=",
    parameter: "<parameter=",
    parameterEnd: "</parameter>",
    ends: ["</function>", "</tool_call>"],
  },
  { opening: "<function name=", parameter: "<param name=", parameterEnd: "</param>", ends: ["</function>"] },
  // Claude, MiniMax, DeepSeek since 3.2, Step
  ...[
    ["", ""],
    ["", "antml:"],
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

/** Claude 2's element, which contains the name and the parameters as elements. */
const namelessInvoke: Opening = {
  literal: "<invoke>",
  explicit: true,
  *read(context) {
    const { source, tools } = context
    yield* skipSpace(source)
    if (!(yield* takes(source, "<tool_name>"))) return "text"
    const tool = tools.get((yield* takeWhile(source, /[\w\s.:-]*/y)).trim())
    if (tool === undefined || !(yield* takes(source, "</tool_name>"))) return "text"
    yield* takeAll(source, ["<parameters>"])
    return yield* readNamedParameters(context, tool, ["</parameters>", "</invoke>"])
  },
}

/** Openings of calls that are elements. */
export const elementOpenings: readonly Opening[] = [
  namelessInvoke,
  ...forms.map(
    (form): Opening => ({
      literal: form.opening,
      explicit: true,
      read: (context) => readElement(context, form),
    }),
  ),
]

/** Reads an element if one comes next. Returns true if the element is a call. */
export function* takeElement(context: ReadContext): Reading<boolean> {
  for (const { literal, read } of elementOpenings) {
    if (yield* takes(context.source, literal)) return (yield* read(context)) === "calls"
  }
  return false
}

function* readElement(context: ReadContext, form: ElementForm): Reading<"calls" | "text"> {
  const { source } = context
  const name = yield* takeName(context, /[\w.:-]*/y)
  yield* takeWhile(source, /[^<>\n]*/y)
  if (!name || !(yield* takes(source, ">"))) return "text"
  yield* skipSpace(source)
  const [end] = form.ends
  if ((yield* charAt(source)) === "{") {
    yield* readArguments(context, name, end)
    // Small models sometimes close the element with another opening tag.
    yield* takeAll(source, [end, end.replace("/", "")])
    return "calls"
  }
  const tool = context.tools.get(name)
  const begins = (yield* sees(source, form.parameter)) || (yield* sees(source, end))
  if (!begins && tool !== undefined) return yield* readNamedParameters(context, tool, [end])
  if (!begins) return "text"
  yield* readParameters(context, name, parametersOf(form))
  return "calls"
}

function parametersOf({ parameter, parameterEnd, ends }: ElementForm): ParameterForm {
  return {
    *key(context) {
      const { source } = context
      if (!(yield* takes(source, parameter))) return undefined
      const key = yield* takeName(context, /[^<>"'=\n]*/y)
      // Qwen Coder sometimes writes an equals sign instead of the bracket.
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

/** Reads a name with or without quotes. */
function* takeName({ source }: ReadContext, pattern: RegExp): Reading<string> {
  const quote = yield* takeWhile(source, /["']?/y)
  const name = yield* takeWhile(source, pattern)
  if (quote !== "") yield* takes(source, quote)
  return name
}

/** Calls as elements that contain their parameters as elements. */
export const xml: Dialect = {
  name: "xml",
  openings: elementOpenings,
  toolOpenings: (tool) => ({
    literal: `<${tool.name}>`,
    explicit: false,
    read: (context) => readNamedElement(context, tool),
  }),
  instructions:
    "Write each call as an element, starting on a new line. Do not escape values. Write lists and objects as JSON:",
  write: (tool, input) =>
    [`<function=${tool}>`, ...Object.entries(input).map(parameter), "</function>"].join("\n"),
}

/**
 * Reads an element named after the tool, with elements named after its parameters:
 * `<read><filePath>a.txt</filePath></read>`.
 */
function readNamedElement(context: ReadContext, tool: SyntheticTool): Reading<"calls" | "text"> {
  return readNamedParameters(context, tool, [`</${tool.name}>`])
}

/** Reads elements that are named after parameters, up to the end marks. */
function* readNamedParameters(
  context: ReadContext,
  tool: SyntheticTool,
  ends: readonly [string, ...string[]],
): Reading<"calls" | "text"> {
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
    end: ends,
  }
  yield* skipSpace(source)
  let begins = yield* sees(source, ends[0])
  for (const name of names) begins ||= yield* sees(source, `<${name}>`)
  if (!begins) return "text"
  yield* readParameters(context, tool.name, form)
  yield* takeAll(source, ends)
  return "calls"
}

function parameter([name, value]: [string, unknown]): string {
  const text = typeof value === "string" ? value : JSON.stringify(value)
  return `<parameter=${name}>\n${text}\n</parameter>`
}
