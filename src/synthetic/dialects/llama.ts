import type { Dialect, Opening } from "../dialect.ts"
import { readObjectCalls } from "../read-json.ts"
import { readPython } from "../read-python.ts"
import { charAt, skipSpace, takeAll } from "../source.ts"
import { bareObject } from "./plain-json.ts"
import { elementOpenings } from "./xml.ts"

const ends = ["<|eom_id|>", "<|eot_id|>"]

/** What Llama 3 writes before a call: JSON or Python follows. */
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

/** Calls of Llama 3: JSON alone, or after its mark. */
export const llama: Dialect = {
  name: "llama",
  openings: [pythonTag, ...elementOpenings, bareObject],
  instructions: "Write each call as a JSON object on a line of its own, with nothing around it:",
  write: (tool, input) => JSON.stringify({ name: tool, parameters: input }),
}
