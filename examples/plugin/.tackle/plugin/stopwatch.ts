import { type Plugin, tool } from "tackle/plugin"

/** Measures each call, adds the duration to the result, and offers a tool that returns the total times. */
export const Stopwatch: Plugin = async (_, options) => {
  const begun = new Map<string, number>()
  const calls = new Map<string, { count: number; failed: number }>()
  const unit = options?.unit === "s" ? "s" : "ms"

  return {
    async "tool.execute.before"({ callID }) {
      begun.set(callID, performance.now())
    },

    async "tool.execute.after"({ tool: name, callID, status }, output) {
      const took = performance.now() - (begun.get(callID) ?? performance.now())
      begun.delete(callID)
      const { count, failed } = calls.get(name) ?? { count: 0, failed: 0 }
      calls.set(name, { count: count + 1, failed: failed + (status === "error" ? 1 : 0) })
      output.metadata.took = unit === "s" ? `${(took / 1000).toFixed(1)} s` : `${Math.round(took)} ms`
    },

    tool: {
      stopwatch: tool({
        description: "Tells how often each tool was called so far, and how often it failed.",
        args: { name: tool.schema.string().optional().describe("Only this tool") },
        async execute({ name }) {
          const lines = [...calls]
            .filter(([each]) => name === undefined || each === name)
            .map(([each, { count, failed }]) => `${each}: ${count} called, ${failed} failed`)
          return lines.join("\n") || "Nothing was called yet."
        },
      }),
    },
  }
}
