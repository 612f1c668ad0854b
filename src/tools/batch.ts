import * as z from "zod"
import type { CallResult } from "../tool/context.ts"
import { define } from "../tool/tool.ts"
import { TackleError } from "../util/errors.ts"
import { readText } from "../util/file-system.ts"
import { counted } from "../util/words.ts"

const maxCalls = 25

const parameters = z.lazy(() =>
  z.object({
    calls: z
      .array(
        z.object({
          tool: z.string().min(1).describe("Tool id"),
          parameters: z.record(z.string(), z.unknown()).describe("Arguments for the tool"),
        }),
      )
      .min(1)
      .max(maxCalls, `at most ${maxCalls} calls; split them into several batches`)
      .describe("Independent calls"),
  }),
)

/**
 * Makes several calls in one call. The engine runs and records each of them like a call from the model. Batches cannot
 * be nested.
 */
export const batchTool = define("batch", {
  description: readText(new URL("./batch.md", import.meta.url)),
  parameters,
  access: "meta",
  // The calls may change files, and the scheduler does not order them relative to other calls in the step.
  serial: true,
  async execute({ calls }, ctx) {
    if (!ctx.call)
      throw new TackleError("batch cannot run inside another call. Make the calls one by one.", {
        code: "batch.unavailable",
        recoverable: true,
      })
    const results = await ctx.call(calls.map(({ tool, parameters }) => ({ tool, input: parameters })))
    const failed = results.filter(({ state }) => state.status === "error").length
    const count = counted(results.length, "call")
    const head =
      failed === 0
        ? `${count} succeeded.`
        : `${failed === results.length ? "" : `${failed} of `}${count} failed.`
    return {
      title: `${count}${failed === 0 ? "" : `, ${failed} failed`}`,
      output: [head, ...results.map(describe)].join("\n"),
      metadata: {
        calls: results.map(({ callID, tool, state }) => ({ callID, tool, status: state.status })),
        // Each output has already been truncated if necessary.
        truncated: results.some(({ state }) => state.metadata?.truncated === true),
      },
      attachments: results.flatMap(({ state }) =>
        state.status === "completed" ? (state.attachments ?? []) : [],
      ),
    }
  },
})

function describe({ tool, state }: CallResult, index: number): string {
  const text = state.status === "error" ? `Error: ${state.error}` : state.output
  return `<call number="${index + 1}" tool="${tool}">\n${text}\n</call>`
}
