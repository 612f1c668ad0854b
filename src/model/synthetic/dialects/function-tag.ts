import type { Opening, ReadContext } from "../dialect.ts"
import { readArguments } from "../read-arguments.ts"
import { type ParameterForm, readParameters } from "../read-parameters.ts"
import { charAt, type Reading, sees, skipSpace, takeAll, takes, takeWhile } from "../source.ts"

/** `<function=name>`: with a JSON object within as Llama writes it, or with parameters as elements as Qwen Coder does. */
export const functionTag: Opening = { literal: "<function=", explicit: true, read: readFunctionTag }

/** Reads from behind `<function=`. */
export function* readFunctionTag(context: ReadContext): Reading<"calls" | "text"> {
  const { source } = context
  const name = yield* takeWhile(source, /[\w.:-]*/y)
  if (name === "" || !(yield* takes(source, ">"))) return "text"
  yield* skipSpace(source)
  if ((yield* charAt(source)) === "{") {
    yield* readArguments(context, name, "</function>")
    yield* takeAll(source, ["</function>"])
    return "calls"
  }
  if (!(yield* sees(source, "<parameter=")) && !(yield* sees(source, "</function>"))) return "text"
  yield* readParameters(context, name, parameters)
  return "calls"
}

const parameters: ParameterForm = {
  *key({ source }) {
    if (!(yield* takes(source, "<parameter="))) return undefined
    const key = yield* takeWhile(source, /[^<>\n]*/y)
    return (yield* takes(source, ">")) ? key.trim() : undefined
  },
  valueEnd: () => "</parameter>",
  end: ["</function>", "</tool_call>"],
}
