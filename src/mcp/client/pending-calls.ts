import type { Progress } from "@modelcontextprotocol/client"
import { TimeoutError } from "../../util/abort.ts"
import type { RequestAnswers } from "./server-requests.ts"

/** A call to a server's tool. */
export interface McpCall {
  name: string
  args: Record<string, unknown>
  /** Whether the server runs the tool only as a task. */
  asTask?: boolean
  /** Id of the calling session. */
  sessionID: string
  signal: AbortSignal
  onProgress(progress: Progress): void
  /** Handles the requests that the server makes during the call. */
  answers: RequestAnswers
}

/** Tracks the running calls to one server. */
export interface PendingCalls {
  /** Runs `work` as a tracked call with an idle timeout. Rejects with the error of `work`, if any. */
  run<T>(call: McpCall, work: (timeout: IdleTimeout) => Promise<T>): Promise<T>
  /**
   * Returns the handler for server requests, or undefined if no calls are running or the running calls belong to
   * several sessions.
   */
  answers(): RequestAnswers | undefined
  /** Resolves when no calls are running. */
  done(): Promise<void>
}

/** Time in milliseconds after which a call without progress fails. */
export const idleTimeoutMs = 10 * 60_000

/** Default time in milliseconds after which a call fails, even if it reports progress. */
const defaultCallMs = 60 * 60_000

/**
 * Creates an empty tracker. The protocol does not say which call a server request belongs to. If all running calls
 * belong to one session, the newest call handles the request, because all calls in a session have the same rules and
 * user. All idle timeouts pause while a request is handled. `callMs` is the time limit of a call in milliseconds.
 */
export function createPendingCalls(server: string, callMs: number = defaultCallMs): PendingCalls {
  const calls = new Map<McpCall, IdleTimeout>()
  const waiting: (() => void)[] = []

  function pauseAll<T>(work: () => Promise<T>): Promise<T> {
    return [...calls.values()].reduce((inner, timeout) => () => timeout.pause(inner), work)()
  }

  return {
    async run(call, work) {
      const timeout = createIdleTimeout(call.signal, {
        ms: idleTimeoutMs,
        message: `The MCP server ${server} reported no progress on ${call.name} for ${idleTimeoutMs / 60_000} minutes.`,
        total: {
          ms: callMs,
          message: `The MCP server ${server} did not finish ${call.name} within ${callMs / 1000} s. If it needs more time, increase "callTimeout" in the configuration.`,
        },
      })
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
  /** Aborts when the given signal aborts, and with a `TimeoutError` after the idle time or the total time. */
  signal: AbortSignal
  /** Restarts the idle time. The total time is not restarted. */
  restart(): void
  /** Pauses the timeout while `work` runs, for example while the user answers a question. */
  pause<T>(work: () => Promise<T>): Promise<T>
  end(): void
}

/** A time limit in milliseconds, at most 2^31 - 1, and the message of the error when the limit expires. */
export interface TimeLimitOptions {
  ms: number
  message: string
}

/** Starts the timeout. `total` limits the total time, excluding pauses. */
export function createIdleTimeout(
  signal: AbortSignal,
  { total, ...idle }: TimeLimitOptions & { total?: TimeLimitOptions },
): IdleTimeout {
  const own = new AbortController()
  let timer: NodeJS.Timeout | undefined
  let totalTimer: NodeJS.Timeout | undefined
  let left = total?.ms ?? 0
  let since = 0
  let paused = 0
  let ended = false

  function start(limit: TimeLimitOptions, ms = limit.ms): NodeJS.Timeout {
    return setTimeout(() => own.abort(new TimeoutError(limit.message, limit.ms)), ms)
  }

  function restart(): void {
    clearTimeout(timer)
    if (paused === 0 && !ended) timer = start(idle)
  }

  function startTotal(): void {
    if (!total || paused > 0 || ended) return
    since = performance.now()
    totalTimer = start(total, left)
  }

  function pauseTotal(): void {
    if (paused === 0) left = Math.max(0, left - (performance.now() - since))
    clearTimeout(totalTimer)
  }

  restart()
  startTotal()
  return {
    signal: AbortSignal.any([signal, own.signal]),
    restart,
    async pause(work) {
      pauseTotal()
      paused += 1
      restart()
      try {
        return await work()
      } finally {
        paused -= 1
        restart()
        startTotal()
      }
    },
    end() {
      ended = true
      clearTimeout(timer)
      clearTimeout(totalTimer)
    },
  }
}
