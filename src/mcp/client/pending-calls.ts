import type { Progress } from "@modelcontextprotocol/client"
import { TimeoutError } from "../../util/abort.ts"
import type { RequestAnswers } from "./server-requests.ts"

/** One call of a server's tool. */
export interface McpCall {
  name: string
  args: Record<string, unknown>
  /** The calling session. */
  sessionID: string
  signal: AbortSignal
  onProgress(progress: Progress): void
  /** Answers the requests that the server makes during the call. */
  answers: RequestAnswers
}

/** Tracks the calls that run on one server. */
export interface PendingCalls {
  /** Runs the call with an idle timeout. Rejects as `work` does. */
  run<T>(call: McpCall, work: (timeout: IdleTimeout) => Promise<T>): Promise<T>
  /** Returns the handler for server requests. Undefined if no call runs, or if calls of several sessions run. */
  answers(): RequestAnswers | undefined
  /** Resolves as soon as no call runs. */
  done(): Promise<void>
}

/** A call without progress for this long fails. In milliseconds. */
export const idleTimeoutMs = 10 * 60_000

/**
 * Creates an empty tracker. The protocol does not say which call a server request belongs to. While all running calls are
 * of one session, the newest call answers: its rules and its user are the same. Idle timeouts pause meanwhile.
 */
export function createPendingCalls(server: string): PendingCalls {
  const calls = new Map<McpCall, IdleTimeout>()
  const waiting: (() => void)[] = []

  function pauseAll<T>(work: () => Promise<T>): Promise<T> {
    return [...calls.values()].reduce((inner, timeout) => () => timeout.pause(inner), work)()
  }

  return {
    async run(call, work) {
      const message = `The MCP server ${server} reported no progress on ${call.name} for ${idleTimeoutMs / 60_000} minutes.`
      const timeout = createIdleTimeout(call.signal, idleTimeoutMs, message)
      calls.set(call, timeout)
      try {
        return await work(timeout)
      } finally {
        calls.delete(call)
        timeout.end()
        if (calls.size === 0) for (const resolve of waiting.splice(0)) resolve()
      }
    },
    async done() {
      if (calls.size > 0) await new Promise<void>((resolve) => waiting.push(resolve))
    },
    answers() {
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

/** A timeout that every sign of activity restarts. */
export interface IdleTimeout {
  /** Fires with the given signal, and with a `TimeoutError` after the idle time. */
  signal: AbortSignal
  /** Restarts the time. */
  restart(): void
  /** Stops the time while `work` runs: the user's time to answer does not count. */
  pause<T>(work: () => Promise<T>): Promise<T>
  end(): void
}

/** Starts the time at once. `ms` is at most 2^31 - 1. */
export function createIdleTimeout(signal: AbortSignal, ms: number, message: string): IdleTimeout {
  const own = new AbortController()
  let timer: NodeJS.Timeout | undefined
  let paused = 0
  let ended = false

  function restart(): void {
    clearTimeout(timer)
    if (paused === 0 && !ended) timer = setTimeout(() => own.abort(new TimeoutError(message, ms)), ms)
  }

  restart()
  return {
    signal: AbortSignal.any([signal, own.signal]),
    restart,
    async pause(work) {
      paused += 1
      restart()
      try {
        return await work()
      } finally {
        paused -= 1
        restart()
      }
    },
    end() {
      ended = true
      clearTimeout(timer)
    },
  }
}
