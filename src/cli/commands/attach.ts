import { createInterface } from "node:readline"
import { type Command, Option } from "commander"
import type { SessionClient } from "../../client/sessions.ts"
import { currentTime } from "../../util/clock.ts"
import { localMinute } from "../../util/local-time.ts"
import { oneLine } from "../../view/visible.ts"
import { interruptible } from "../process/exit.ts"
import { canAskHere } from "../process/question.ts"
import { printHint, printJson, printLine } from "../process/stdout.ts"
import { answerRequests } from "../run/answer.ts"
import { createView, type ForegroundFlags } from "../run/foreground.ts"
import { openClient, type RemoteFlags, showSession } from "../run/remote.ts"
import { namedSession } from "../run/run-on-server.ts"
import type { View } from "../view/view.ts"
import { directoryOf } from "../workspace/workspace.ts"
import { directoryFlag, formatFlag, jsonFlag, tokenFileFlag } from "./flags.ts"

/** Defines `tackle attach`. */
export function defineAttach(attach: Command): void {
  directoryFlag(attach)
    .argument("<url>", "URL of the server")
    .option("-s, --session <id>", "follow this session, and send it each line of stdin")
    .addOption(new Option("-c, --continue", "follow the last session of the directory").conflicts("session"))
    .addOption(tokenFileFlag())
    .addOption(formatFlag())
    .addOption(jsonFlag())
    .option("-q, --quiet", "print one line per call, without output, diffs and progress")
    .option("--auto", "allow every request once, except for denied calls, loops and protected files")
    .action(attachToServer)
}

/** Flags of `tackle attach`. */
export interface AttachFlags extends RemoteFlags, Pick<ForegroundFlags, "format" | "quiet" | "auto" | "dir"> {
  /** Id of the session to follow. `continue` selects the last session of the directory. */
  session?: string
  continue?: boolean
}

/** Runs `tackle attach`: lists the sessions of a server, or follows one and sends it the lines of stdin. */
export async function attachToServer(url: string, flags: AttachFlags): Promise<void> {
  const client = openClient(url, flags, directoryOf(flags.dir))
  if (flags.session === undefined && !flags.continue) {
    const sessions = await client.sessions.list({ everywhere: flags.dir === undefined })
    if (flags.format === "json") return printJson({ sessions })
    if (sessions.length === 0) return printLine("No sessions yet.")
    for (const { id, status, time, title, directory } of sessions) {
      const start = `${id}  ${localMinute(time.updated)}  ${status.padEnd(7)}  `
      const room = process.stdout.isTTY ? process.stdout.columns - start.length : Number.POSITIVE_INFINITY
      printLine(`${start}${oneLine(`${title || "(no prompt yet)"} [${directory}]`, room)}`)
    }
    return printHint(`To follow a session: tackle attach ${url} -s <id>`)
  }
  const session = await namedSession(client, flags.session)
  const info = await session.info()
  const view = createView(flags, info)
  await interruptible(async (signal) => {
    const leave = new AbortController()
    const left = AbortSignal.any([signal, leave.signal])
    view.continues(info)
    await showRecent(session, view)
    const { worktree, seq: after } = info
    const shown = showSession({ client, session, worktree, after, show: view.show })
    left.addEventListener("abort", shown.leave, { once: true })
    const lines = readLines(left, (text) => session.send(text))
    const { auto = false } = flags
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
      await Promise.race([lines.ended, shown.until(Number.POSITIVE_INFINITY)])
      if (!left.aborted && !process.stdin.isTTY) {
        await session.wait({ signal: left })
        await shown.until((await session.info()).seq)
      }
    } catch (error) {
      if (!left.aborted) throw error
    } finally {
      leave.abort()
      await view.end()
    }
  })
}

/** Number of messages to show when the command starts to follow a session. */
const recentMessages = 2

async function showRecent(session: SessionClient, view: View): Promise<void> {
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
