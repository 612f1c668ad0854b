import type { Progress } from "@modelcontextprotocol/client"
import { createPatience, type Patience } from "./patience.ts"
import type { CallAnswers } from "./requests.ts"

/** One call of a tool. */
export interface McpCall {
  name: string
  args: Record<string, unknown>
  /** The session that calls. */
  sessionID: string
  signal: AbortSignal
  onProgress(progress: Progress): void
  /** Answers what the server asks meanwhile. */
  answers: CallAnswers
}

/** What one server is at work on. */
export interface CallsUnderWay {
  /** Runs the call with the patience there is for it. Rejects as `work` does. */
  run<T>(call: McpCall, work: (patience: Patience) => Promise<T>): Promise<T>
  /** Answers what the server asks now. Undefined: there is no call that it could belong to, or no telling which. */
  answering(): CallAnswers | undefined
  /** Resolves as soon as there is no call. */
  over(): Promise<void>
}

/** What shows no progress for so long is given up. In milliseconds. */
export const silenceMs = 10 * 60_000

/**
 * The protocol does not say which call a request of the server belongs to. As long as all that are under way are of one
 * session it is taken for one of the newest: the same rules and the same person answer it. Meanwhile no call's time runs.
 */
export function createCallsUnderWay(server: string): CallsUnderWay {
  const calls = new Map<McpCall, Patience>()
  const waiting: (() => void)[] = []

  function pauseAll<T>(work: () => Promise<T>): Promise<T> {
    return [...calls.values()].reduce((inner, patience) => () => patience.pause(inner), work)()
  }

  return {
    async run(call, work) {
      const minutes = silenceMs / 60_000
      const expired = `The MCP server ${server} showed no progress on ${call.name} for ${minutes} minutes.`
      const patience = createPatience(call.signal, silenceMs, expired)
      calls.set(call, patience)
      try {
        return await work(patience)
      } finally {
        calls.delete(call)
        patience.end()
        if (calls.size === 0) for (const resolve of waiting.splice(0)) resolve()
      }
    },
    async over() {
      if (calls.size > 0) await new Promise<void>((resolve) => waiting.push(resolve))
    },
    answering() {
      const newest = [...calls.keys()].at(-1)
      const sessions = new Set([...calls.keys()].map(({ sessionID }) => sessionID))
      if (!newest || sessions.size > 1) return undefined
      const { elicit, sample } = newest.answers
      return {
        elicit: (form, signal) => pauseAll(() => elicit(form, signal)),
        sample: (request, signal) => pauseAll(() => sample(request, signal)),
      }
    },
  }
}
