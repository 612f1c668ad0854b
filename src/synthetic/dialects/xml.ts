import { isRecord } from "../../util/json.ts"
import type { Dialect, ReadContext, SyntheticTool } from "../dialect.ts"
import { type ParameterForm, readParameters } from "../read-parameters.ts"
import { type Reading, sees, skipSpace, takes } from "../source.ts"
import { elementOpenings } from "./elements.ts"

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
