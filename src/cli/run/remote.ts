import { existsSync } from "node:fs"
import { join } from "node:path"
import type { Awaitable, SessionApi, TackleApi } from "../../client/api.ts"
import { createClient, type TackleClient } from "../../client/client.ts"
import type { RemoteSession, SessionClient } from "../../client/sessions.ts"
import { defaultDataDirectory } from "../../engine/data-directory.ts"
import type { TackleEvent } from "../../event/events.ts"
import type { PermissionRequest } from "../../schema/permission.ts"
import type { QuestionRequest } from "../../schema/question.ts"
import { readTokenFile, scopes } from "../../server/tokens.ts"
import { errorMessage, UsageError } from "../../util/errors.ts"
import { shellWord } from "../../util/words.ts"
import { exitCode, interruptible } from "../process/exit.ts"
import { warn } from "../process/notice.ts"
import { canAskHere } from "../process/question.ts"
import { directoryOf } from "../workspace/workspace.ts"
import { type AskedRequests, answerRequests } from "./answer.ts"
import { createView, type Foreground, type ForegroundFlags, startTimeLimit } from "./foreground.ts"

/** Flags for a command that uses a server. */
export interface RemoteFlags {
  /**
   * Path of the server's token file. If absent, the token comes from `$TACKLE_SERVER_TOKEN` or from the file
   * `server-token` in the data directory.
   */
  tokenFile?: string
}

/** Opens a client for a server. Throws `UsageError` for an invalid URL or token file. */
export function openClient(url: string, { tokenFile }: RemoteFlags, directory: string): TackleClient {
  if (!/^https?:\/\//.test(url) || !URL.canParse(url))
    throw new UsageError(`"${url}" is not the URL of a server. Example: http://127.0.0.1:8486`)
  // Errors of subscriptions are ignored, because other requests report the same problem.
  return createClient({ url, token: tokenOf(tokenFile), directory, onProblem: () => {} })
}

/**
 * Returns `TACKLE_SERVER_TOKEN` if this variable is set and no token file is given. Otherwise returns the token with
 * the widest scope in the token file. Throws `UsageError` if the token file is missing or invalid.
 */
export function tokenOf(tokenFile: string | undefined): string {
  const given = process.env.TACKLE_SERVER_TOKEN
  if (tokenFile === undefined && given) return given
  const path = tokenFile ?? join(defaultDataDirectory(process.env), "server-token")
  if (!existsSync(path))
    throw new UsageError(
      `The token file ${path} does not exist. Pass the path of the server's token file with --token-file, or set TACKLE_SERVER_TOKEN.`,
    )
  const tokens = readTokenFile(path).sort((a, b) => scopes.indexOf(b.scope) - scopes.indexOf(a.scope))
  return tokens[0]?.token ?? ""
}

/** Returns the flags that connect another command to the server, as text. */
export function serverFlags(url: string, flags: RemoteFlags): string {
  return `--attach ${shellWord(url)}${tokenFlag(flags)}`
}

/** Returns the flag `--token-file` after a space, as text for a command, or an empty string without a token file. */
export function tokenFlag({ tokenFile }: RemoteFlags): string {
  return tokenFile === undefined ? "" : ` --token-file ${shellWord(tokenFile)}`
}

/** A session on a server whose events are shown. */
export interface ShownSession {
  /** Requests from the session and its subagents, for `answerRequests`. */
  requests: AskedRequests
  /** Resolves when the change with this number is shown. Later changes are not shown. Rejects if the stream fails. */
  until(seq: number): Promise<void>
  /** Ends the stream. */
  leave(): void
}

/**
 * Shows a session's events after the change with the number `after`, and its subagents' events. Requests that are
 * already waiting are reported when the first listener is added.
 */
export function showSession({
  api,
  session,
  worktree,
  after,
  show,
}: {
  api: TackleApi
  session: SessionApi
  worktree: string
  after: number
  show(event: TackleEvent): void
}): ShownSession {
  const leave = new AbortController()
  const family = new Set([session.id])
  const known = new Set<string>()
  const permissions: ((request: PermissionRequest) => void)[] = []
  const questions: ((request: QuestionRequest) => void)[] = []
  const ends: ((requestID: string) => void)[] = []
  let last = after
  let wanted = Number.POSITIVE_INFINITY

  function take(event: TackleEvent): void {
    show(event)
    if (event.type === "permission.asked") tell(permissions, event.request)
    if (event.type === "question.asked") tell(questions, event.request)
    if (
      event.type === "permission.replied" ||
      event.type === "question.replied" ||
      event.type === "question.rejected"
    )
      for (const listener of ends) listener(event.requestID)
  }

  function tell<T extends { id: string }>(listeners: readonly ((request: T) => void)[], request: T): void {
    if (known.has(request.id)) return
    known.add(request.id)
    for (const listener of listeners) listener(request)
  }

  const unsubscribe = api.subscribe((event) => {
    if (event.sessionID !== session.id && isOf(event, family)) take(event)
  })
  const ended = (async () => {
    try {
      for await (const event of session.events({ after, signal: leave.signal })) {
        if (event.type === "reset") continue
        last = event.seq ?? last
        take(event)
        if (last >= wanted) break
      }
    } finally {
      unsubscribe()
    }
  })()
  ended.catch(() => undefined)

  return {
    requests: {
      worktree,
      async reply(requestID, reply) {
        const outcome = await reported(api.reply(requestID, reply))
        if (outcome === "already")
          warn("another client already answered the request, so your reply was not applied.")
      },
      pendingRequests: (sessionID) => api.pendingRequests(sessionID),
      questions: {
        pending: (sessionID) => api.questions.pending(sessionID),
        reply: async (id, answers) => (await reported(api.questions.reply(id, answers))) ?? "unknown",
        reject: async (id) => (await reported(api.questions.reject(id))) ?? "unknown",
      },
      onPermission(listener) {
        permissions.push(listener)
        void waiting(api.pendingRequests(session.id), permissions)
      },
      onQuestion(listener) {
        questions.push(listener)
        void waiting(api.questions.pending(session.id), questions)
      },
      onEnd: (listener) => void ends.push(listener),
    },
    async until(seq) {
      wanted = seq
      if (last >= seq) leave.abort()
      await ended
    },
    leave: () => leave.abort(),
  }

  async function waiting<T extends { id: string }>(
    requests: Awaitable<T[]>,
    listeners: readonly ((request: T) => void)[],
  ): Promise<void> {
    for (const request of (await reported(requests)) ?? []) tell(listeners, request)
  }
}

/** Resolves like `work`. If `work` rejects, prints the error and resolves with undefined. */
async function reported<T>(work: Awaitable<T>): Promise<T | undefined> {
  try {
    return await work
  } catch (error) {
    warn(errorMessage(error))
    return undefined
  }
}

/**
 * Returns true for an event from a session in `family`. First adds the event's session if its parent is in `family`.
 */
function isOf(event: TackleEvent, family: Set<string>): boolean {
  const { sessionID } = event
  const parent =
    event.type === "session.created" || event.type === "session.updated"
      ? event.session.parentID
      : event.type === "permission.asked" || event.type === "question.asked"
        ? event.request.tool?.parent?.sessionID
        : undefined
  if (parent !== undefined && family.has(parent)) family.add(sessionID)
  return family.has(sessionID)
}

/** Flags for a run on a server. */
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
      return await run(prompt, flags, { url, client, signal, interrupt })
    } finally {
      stopTimer()
    }
  })
}

async function run(
  prompt: string,
  flags: ServerRunFlags,
  {
    url,
    client,
    signal,
    interrupt,
  }: Pick<Foreground, "signal" | "interrupt"> & { url: string; client: TackleClient },
): Promise<number> {
  const session = await openSession(client, flags)
  const info = await session.info()
  const { worktree, seq: after } = info
  const view = createView({ ...flags, serverFlags: serverFlags(url, flags) }, info)
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
      throw new UsageError("--fork requires a session to copy: use -c for the latest session, or -s <id>.")
    return client.sessions.create({ agent, model })
  }
  const session = await namedSession(client, flags.session)
  const chosen = fork ? ((await client.sessions.fork(session.id)) ?? session) : session
  if (agent !== undefined || model !== undefined) await chosen.update({ agent, model })
  return chosen
}

/**
 * Returns a session on the server. Default: the most recently used session in the project. Throws `UsageError` if the
 * session does not exist.
 */
export async function namedSession(client: TackleClient, id: string | undefined): Promise<SessionClient> {
  const [last]: RemoteSession[] = id === undefined ? await client.sessions.list({ limit: 1 }) : []
  const wanted = id ?? last?.id
  if (wanted === undefined) throw new UsageError("The server has no sessions for this project.")
  const session = await client.sessions.get(wanted)
  if (!session) throw new UsageError(`The server has no session ${wanted}.`)
  return session
}
