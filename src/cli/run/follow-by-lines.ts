import { createInterface } from "node:readline"
import type { SessionApi, TackleApi } from "../../client/api.ts"
import { errorMessage } from "../../util/errors.ts"
import { currentTime } from "../../util/time.ts"
import { handleInterrupts } from "../process/exit.ts"
import { warn } from "../process/notice.ts"
import { canAskHere } from "../process/question.ts"
import type { View } from "../view/view.ts"
import { answerRequests } from "./answer.ts"
import { showSession } from "./remote.ts"

/** Options for {@link followByLines}. */
export interface LineOptions {
  api: TackleApi
  session: SessionApi
  worktree: string
  /** Number of the change after which events are shown. */
  after: number
  view: View
  /** Whether to answer requests as `--auto` does. */
  auto?: boolean
  /** Text to send first. */
  prompt?: string
  /** The lines to send. Default: the lines of stdin. */
  lines?: Lines
  /** Whether Ctrl+C first interrupts the run. By default, Ctrl+C quits, and the run continues. */
  interruptsRun?: boolean
  signal: AbortSignal
}

/**
 * Shows a session and sends it each line of stdin. Only appends lines, so that screen readers and simple terminals can
 * show the session. Ends when stdin ends, the signal aborts, or the session is deleted. If stdin is not a terminal,
 * first waits until the session is idle.
 */
export async function followByLines(options: LineOptions): Promise<void> {
  const { api, session, worktree, after, view, auto = false, interruptsRun = false, prompt, signal } = options
  const leave = new AbortController()
  const left = AbortSignal.any([signal, leave.signal])
  const shown = showSession({ api, session, worktree, after, show: view.show })
  left.addEventListener("abort", shown.leave, { once: true })
  const { lines = openLines(signal) } = options
  const interrupt = interruptsRun ? createInterrupt(options, () => leave.abort()) : () => leave.abort()
  const stopHandling = interruptsRun
    ? handleInterrupts(() => {
        if (left.aborted) return false
        interrupt()
        return true
      })
    : () => {}
  if (auto || canAskHere(process.env)) {
    const pause = () => {
      const [showAgain, readAgain] = [view.pause(), lines.pause()]
      return () => {
        showAgain()
        readAgain()
      }
    }
    answerRequests(shown.requests, {
      auto,
      questions: !auto,
      pause,
      signal: left,
      interrupt,
    })
  }
  try {
    if (prompt !== undefined) await session.send(prompt)
    await Promise.race([sendLines(session, lines, left), shown.until(Number.POSITIVE_INFINITY)])
    if (!left.aborted && !process.stdin.isTTY) {
      await session.wait({ signal: left })
      await shown.until(await session.sequence())
    }
  } catch (error) {
    if (!left.aborted) throw error
  } finally {
    stopHandling()
    leave.abort()
    lines.close()
  }
}

/** Returns a function that stops the run, or quits if the session is idle or the run is already being stopped. */
function createInterrupt({ api, session }: LineOptions, leave: () => void): () => void {
  let isStopping = false

  async function stopRun(): Promise<void> {
    const status = await api.sessions.status(session.id)
    if (status === undefined || status === "idle") return leave()
    warn("interrupting the run. Press Ctrl+C again to quit.")
    await session.interrupt()
    await session.wait()
    isStopping = false
  }

  return () => {
    if (isStopping) return leave()
    isStopping = true
    stopRun().catch((error: unknown) => {
      warn(errorMessage(error))
      leave()
    })
  }
}

/** Sends each line, one after another. Resolves after the last line, or when the signal aborts. */
async function sendLines(session: SessionApi, lines: Lines, signal: AbortSignal): Promise<void> {
  for (;;) {
    const text = await lines.next()
    if (text === undefined || signal.aborted) return
    await session.send(text)
  }
}

/** Number of messages to show when the command starts to follow a session. */
const recentMessages = 2

/** Shows the newest messages of a session. */
export async function showRecent(session: SessionApi, view: View): Promise<void> {
  const about = { time: currentTime(), sessionID: session.id }
  for (const { message, parts } of await session.messages({ limit: recentMessages })) {
    view.show({ type: "message.created", ...about, message })
    for (const part of parts) view.show({ type: "part.updated", ...about, part })
  }
}

/** The non-empty lines of stdin. */
export interface Lines {
  /** Resolves with the next line, or with undefined if reading has ended or the signal has aborted. */
  next(): Promise<string | undefined>
  /** Stops reading stdin, so that a question can read it. Returns a function that resumes reading. */
  pause(): () => void
  close(): void
}

/** Starts reading stdin. Keeps the lines until they are requested. */
export function openLines(signal: AbortSignal): Lines {
  const waiting: string[] = []
  let isEnded = false
  let wake = Promise.withResolvers<void>()
  let stopReading = open()
  signal.addEventListener("abort", close)

  function close(): void {
    signal.removeEventListener("abort", close)
    stopReading()
    end()
  }

  function end(): void {
    isEnded = true
    wake.resolve()
  }

  function open(): () => void {
    if (process.stdin.readableEnded) {
      end()
      return () => {}
    }
    const lines = createInterface({ input: process.stdin, terminal: false })
    let isPaused = false
    lines.on("line", (line) => {
      if (line.trim() === "") return
      waiting.push(line.trim())
      wake.resolve()
    })
    lines.on("close", () => {
      if (!isPaused) end()
    })
    return () => {
      isPaused = true
      lines.close()
    }
  }

  return {
    async next() {
      while (waiting.length === 0 && !isEnded) {
        await wake.promise
        wake = Promise.withResolvers()
      }
      return signal.aborted ? undefined : waiting.shift()
    },
    pause() {
      stopReading()
      return () => {
        if (!signal.aborted) stopReading = open()
      }
    },
    close,
  }
}
