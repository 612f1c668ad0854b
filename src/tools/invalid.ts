import * as z from "zod"
import { define } from "../tool/tool.ts"
import { TackleError } from "../util/errors.ts"
import { readText } from "../util/file-system.ts"

/** Returns the message for an invalid call. If the tool name is unknown, `available` lists the offered tools. */
export function invalidCallMessage(call: {
  tool: string
  error: string
  available?: readonly string[]
}): string {
  const reason = /[.!?]$/.test(call.error) ? call.error : `${call.error}.`
  const tools = call.available?.length ? `\nAvailable tools: ${call.available.join(", ")}.` : ""
  return `Invalid call to "${call.tool}": ${reason}${tools}`
}

/**
 * Represents calls that cannot run, such as calls with an unknown tool name. Never offered to a model. Always throws
 * `TackleError` with the code `invalid-call`.
 */
export const invalidTool = define("invalid", {
  description: readText(new URL("./invalid.md", import.meta.url)),
  parameters: z.lazy(() =>
    z.object({
      tool: z.string().describe("Name of the tool in the call"),
      error: z.string().describe("What is wrong, and what to use instead"),
    }),
  ),
  access: "meta",
  async execute(call) {
    throw new TackleError(invalidCallMessage(call), { code: "invalid-call", recoverable: true })
  },
})
