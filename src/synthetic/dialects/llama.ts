import type { Dialect, Opening } from "../dialect.ts"
import { readObjectCalls } from "../read-json.ts"
import { readPython } from "../read-python.ts"
import { charAt, skipSpace, takeAll } from "../source.ts"
import { bareObject } from "./plain-json.ts"
import { elementOpenings } from "./xml.ts"

const ends = ["<|eom_id|>", "<|eot_id|>"]

/** The mark that Llama 3 writes before JSON or Python. */
const pythonTag: Opening = {
  literal: "<|python_tag|>",
  explicit: true,
  *read(context) {
    const { source } = context
    yield* skipSpace(source)
    const first = yield* charAt(source)
    const found =
      first === "{" ? yield* readObjectCalls(context) : (yield* readPython(context, true)) === "calls"
    if (found) yield* takeAll(source, ends)
    return found ? "calls" : "text"
  },
}

/** Calls as JSON, alone or after a mark, the format of Llama 3. */
export const llama: Dialect = {
  name: "llama",
  openings: [pythonTag, ...elementOpenings, bareObject],
  instructions: "Write each call as a JSON object on a separate line, with nothing around it:",
  write: (tool, input) => JSON.stringify({ name: tool, parameters: input }),
}
