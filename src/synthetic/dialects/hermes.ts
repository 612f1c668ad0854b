import type { Dialect } from "../dialect.ts"
import { bareObject } from "./bare-object.ts"
import { listTag } from "./enclosed.ts"
import { tagOpenings } from "./tags.ts"

/** Calls as JSON in `<tool_call>`, as Hermes, Qwen and many that learned from them write. */
export const hermes: Dialect = {
  name: "hermes",
  openings: [...tagOpenings, listTag, bareObject],
  instructions: "Write each call as JSON between tags, on lines of its own:",
  write: (tool, input) => `<tool_call>\n${JSON.stringify({ name: tool, arguments: input })}\n</tool_call>`,
}
