import type { TackleClient } from "../../client/client.ts"
import type { RemoteSession, SessionClient } from "../../client/sessions.ts"
import { UsageError } from "../../util/errors.ts"
import { exitCode, interruptible } from "../process/exit.ts"
import { warn } from "../process/notice.ts"
import { canAskHere } from "../process/question.ts"
import { directoryOf } from "../workspace/workspace.ts"
import { answerRequests } from "./answer.ts"
import { createView, type Foreground, type ForegroundFlags, startTimeLimit } from "./foreground.ts"
import { openClient, type RemoteFlags, showSession } from "./remote.ts"

/** Flags of a run on a server. */
export interface ServerRunFlags extends ForegroundFlags, RemoteFlags {
  model?: string
  agent?: string
  session?: string
  continue?: boolean
  fork?: boolean
}

/** Runs one prompt in a session on a server, shows its events, and sets the exit code. */
export async function runOnServer(url: string, prompt: string, flags: ServerRunFlags): Promise<void> {
  const client = openClient(url, flags, directoryOf(flags.dir))
  process.exitCode = await interruptible(async (signal, interrupt) => {
    const stopTimer = startTimeLimit(flags.timeout, { signal, interrupt })
    try {
      return await run(prompt, flags, { client, signal, interrupt })
    } finally {
      stopTimer()
    }
  })
}

async function run(
  prompt: string,
  flags: ServerRunFlags,
  { client, signal, interrupt }: Pick<Foreground, "signal" | "interrupt"> & { client: TackleClient },
): Promise<number> {
  const session = await openSession(client, flags)
  const info = await session.info()
  const { worktree, seq: after } = info
  const view = createView(flags, info)
  if (flags.session !== undefined || flags.continue) view.continues(info)
  let shownEnd = 0
  const shown = showSession({
    ...{ api: client, session, worktree, after },
    show(event) {
      if (event.type === "run.completed" && event.sessionID === session.id) shownEnd = event.time
      view.show(event)
    },
  })
  const { auto = false } = flags
  const questions = canAskHere(process.env) && !auto
  answerRequests(shown.requests, { auto, questions, pause: view.pause, signal, interrupt })
  const stop = () => void session.interrupt().catch(() => undefined)
  signal.addEventListener("abort", stop, { once: true })
  try {
    await session.send(prompt)
    if (signal.aborted) stop()
    const end = await session.wait()
    await shown.until((await session.info()).seq)
    if (end && end.time !== shownEnd) view.show(end)
    await view.end()
    if (end) return end.exitCode
    warn(`the server was restarted during the run of session ${session.id}.`)
    return exitCode.failed
  } finally {
    signal.removeEventListener("abort", stop)
    shown.leave()
    await view.end()
  }
}

async function openSession(client: TackleClient, flags: ServerRunFlags): Promise<SessionClient> {
  const { fork = false, agent, model } = flags
  if (flags.session === undefined && !flags.continue) {
    if (fork)
      throw new UsageError("--fork requires a session to copy: use -c for the last session, or -s <id>.")
    return client.sessions.create({ agent, model })
  }
  const session = await namedSession(client, flags.session)
  const chosen = fork ? ((await client.sessions.fork(session.id)) ?? session) : session
  if (agent !== undefined || model !== undefined) await chosen.update({ agent, model })
  return chosen
}

/** Returns a session of the server. Default: the session of the project that was used last. */
export async function namedSession(client: TackleClient, id: string | undefined): Promise<SessionClient> {
  const [last]: RemoteSession[] = id === undefined ? await client.sessions.list({ limit: 1 }) : []
  const wanted = id ?? last?.id
  if (wanted === undefined) throw new UsageError("The server has no sessions of this project.")
  const session = await client.sessions.get(wanted)
  if (!session) throw new UsageError(`The server has no session ${wanted}.`)
  return session
}
