import type { ServerContext } from "@modelcontextprotocol/server"
import type { ToolStateRunning } from "../../schema/tool-state.ts"
import { isRecord } from "../../util/json.ts"

/** What the client hears of one call while it runs. */
export interface Progress {
  /** Tells the client what a running call shows of itself. */
  report(state: ToolStateRunning): void
  /** Nothing is told any more; resolves when what was told is out. */
  end(): Promise<void>
}

/** Longest line that is told, in characters. */
const maxLine = 200

/** Progress of one call, where the client asked for it. What a tool does not count is counted by its reports. */
export function createProgress(
  { mcpReq }: ServerContext,
  onProblem: (message: string, error: unknown) => void,
): Progress {
  const progressToken = mcpReq._meta?.progressToken
  let reached = Number.NEGATIVE_INFINITY
  let reports = 0
  let ended = false
  let last: Promise<void> = Promise.resolve()

  return {
    report(state) {
      const { metadata = {} } = state
      if (progressToken === undefined || ended || mcpReq.signal.aborted) return
      const { done, total } = isRecord(metadata.progress) ? metadata.progress : {}
      reports += 1
      const progress = typeof done === "number" ? done : reports
      // The protocol wants a number that rises.
      if (progress <= reached) return
      reached = progress
      const message = progressLine(state)
      const params = {
        progressToken,
        progress,
        ...(typeof total === "number" ? { total } : {}),
        ...(message === undefined ? {} : { message }),
      }
      last = last
        .then(() => mcpReq.notify({ method: "notifications/progress", params }))
        .catch((error: unknown) => onProblem("progress could not be told", error))
    },
    async end() {
      ended = true
      await last
    },
  }
}

/** What a running call shows of itself, in a line: the last of its output, or its title. */
export function progressLine({ title, metadata = {} }: ToolStateRunning): string | undefined {
  return lastLine(metadata.output) ?? title
}

function lastLine(output: unknown): string | undefined {
  if (typeof output !== "string") return undefined
  return output.trimEnd().split("\n").at(-1)?.slice(0, maxLine) || undefined
}
