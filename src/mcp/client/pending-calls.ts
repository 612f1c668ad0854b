import type { Progress } from "@modelcontextprotocol/client"
import { TimeoutError } from "../../util/abort.ts"
import type { RequestAnswers } from "./server-requests.ts"

/** A call to a server's tool. */
export interface McpCall {
  name: string
  args: Record<string, unknown>
  /** Id of the calling session. */
  sessionID: string
  signal: AbortSignal
  onProgress(progress: Progress): void
  /** Answers the requests that the server makes during the call. */
  answers: RequestAnswers
}

/** Tracks the running calls to one server. */
export interface PendingCalls {
  /** Runs `work` as a tracked call with an idle timeout. Rejects with the error of `work`. */
  run<T>(call: McpCall, work: (timeout: IdleTimeout) => Promise<T>): Promise<T>
  /**
   * Returns the handler for server requests. Undefined if no calls are running, or if the running calls belong to
   * several sessions.
   */
  answers(): RequestAnswers | undefined
  /** Resolves when no calls are running. */
  done(): Promise<void>
}

/** Time in milliseconds after which a call without progress fails. */
export const idleTimeoutMs = 10 * 60_000

/**
 * Creates an empty tracker. The protocol does not say which call a server request belongs to. If all running calls
 * belong to one session, the newest call answers, because they share their rules and user. All idle timeouts pause
 * while it answers.
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

/** A timeout that restarts on activity. */
export interface IdleTimeout {
  /** Fires when the given signal fires, and with a `TimeoutError` after the idle time. */
  signal: AbortSignal
  /** Restarts the idle time. */
  restart(): void
  /** Pauses the timeout while `work` runs, for example while the user answers a question. */
  pause<T>(work: () => Promise<T>): Promise<T>
  end(): void
}

/** Starts the timeout. `ms` is at most 2^31 - 1. */
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
