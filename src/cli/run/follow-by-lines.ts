import { createInterface } from "node:readline"
import type { SessionApi, TackleApi } from "../../client/api.ts"
import { currentTime } from "../../util/clock.ts"
import { canAskHere } from "../process/question.ts"
import type { View } from "../view/view.ts"
import { answerRequests } from "./answer.ts"
import { showSession } from "./remote.ts"

/** Options of {@link followByLines}. */
export interface LineOptions {
  api: TackleApi
  session: SessionApi
  worktree: string
  /** Number of the last change that is not shown. */
  after: number
  view: View
  /** True with `--auto`. */
  auto?: boolean
  /** Text to send first. */
  prompt?: string
  signal: AbortSignal
}

/**
 * Shows a session and sends it each line of stdin. Only appends lines, so that screen readers and simple terminals can
 * show it. Ends with stdin, when the signal fires, or when the session is deleted.
 */
export async function followByLines(options: LineOptions): Promise<void> {
  const { api, session, worktree, after, view, auto = false, prompt, signal } = options
  const leave = new AbortController()
  const left = AbortSignal.any([signal, leave.signal])
  const shown = showSession({ api, session, worktree, after, show: view.show })
  left.addEventListener("abort", shown.leave, { once: true })
  const lines = readLines(left, (text) => session.send(text))
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
      interrupt: () => leave.abort(),
    })
  }
  try {
    if (prompt !== undefined) await session.send(prompt)
    await Promise.race([lines.ended, shown.until(Number.POSITIVE_INFINITY)])
    if (!left.aborted && !process.stdin.isTTY) {
      await session.wait({ signal: left })
      await shown.until(await session.sequence())
    }
  } catch (error) {
    if (!left.aborted) throw error
  } finally {
    leave.abort()
    await view.end()
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

/**
 * Calls `send` for each line of stdin that is not empty, one after another. `ended` settles at the end of stdin, when
 * the signal fires, or with the error of `send`.
 */
function readLines(signal: AbortSignal, send: (text: string) => Promise<unknown>) {
  const { promise: ended, resolve, reject } = Promise.withResolvers<void>()
  let last: Promise<unknown> = Promise.resolve()
  let close = open()
  signal.addEventListener("abort", () => {
    close()
    resolve()
  })

  function open(): () => void {
    const lines = createInterface({ input: process.stdin, terminal: false })
    let isPaused = false
    lines.on("line", (line) => {
      const text = line.trim()
      if (text === "") return
      last = last.then(() => send(text))
      last.catch(reject)
    })
    lines.on("close", () => {
      if (!isPaused) last.then(() => resolve(), reject)
    })
    return () => {
      isPaused = true
      lines.close()
    }
  }

  return {
    ended,
    /** Stops reading stdin, so that a question can read it. Returns a function that resumes reading. */
    pause() {
      close()
      return () => {
        if (!signal.aborted) close = open()
      }
    },
  }
}
