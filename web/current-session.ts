import { computed, effect, signal, untracked } from "@preact/signals"
import type { SessionApi } from "../src/client/api.ts"
import type { TackleEvent } from "../src/event/events.ts"
import { type FollowedSession, followSession } from "../src/view/follow-session.ts"
import type { SessionState } from "../src/view/session-state.ts"
import {
  api,
  followList,
  followNothing,
  isActive,
  isLoggedIn,
  isOnline,
  oneStream,
  watchVisibility,
} from "./connection.ts"
import { errorText } from "./errors.ts"
import { announce, attempt, closeInformation, notify } from "./notices.tsx"
import { loadSessions } from "./session-list-data.ts"

/** Id of the open session, or undefined on the start page. Stored in the fragment of the page's address. */
export const sessionID = signal(idInAddress())

/** State of the open session. Undefined while the session loads, and on the start page. */
export const state = signal<SessionState | undefined>(undefined)

/** Reason why the session in the page's address is not shown, or undefined. */
export const loadError = signal<string | undefined>(undefined)

/** True if older messages may exist on the server. */
export const hasOlder = signal(false)

/** Title of the open session. */
export const title = computed(
  () => state.value?.session.title || (loadError.value === undefined ? "New session" : "Session"),
)

const pageSize = 100
let followed: FollowedSession | undefined
let generation = 0
let isLoadingOlder = false

function idInAddress(): string | undefined {
  return /^#(ses_\w+)$/.exec(location.hash)?.[1]
}

/** True from the start of a session until it is shown. */
export const isNewSession = signal(false)

/** Opens a session, or the start page. */
export function openSession(id: string | undefined, { isNew = false } = {}): void {
  isNewSession.value = isNew
  history.pushState(null, "", id === undefined ? "/" : `/#${id}`)
  sessionID.value = id
}

/** True while a request from the open session waits for the user. */
export const isWaiting = computed(
  () => (state.value?.requests.length ?? 0) + (state.value?.questions.length ?? 0) > 0,
)

/** Ids of the calls that wait for permission, separated by spaces. */
export const askedCalls = computed(
  () => state.value?.requests.map(({ tool }) => tool?.callID).join(" ") ?? "",
)

/** Like {@link isWaiting} while the page is hidden and has no stream. */
const isWaitingHidden = signal(false)

/** Follows the session in the page's address, except while the page is hidden. */
export function followAddress(): void {
  for (const type of ["popstate", "hashchange"])
    addEventListener(type, () => {
      sessionID.value = idInAddress()
    })
  watchVisibility()
  effect(() => {
    const id = sessionID.value
    closeInformation()
    if (isLoggedIn.value) void load(id)
    else followNothing()
  })
  let wasActive = true
  effect(() => {
    const active = isActive.value && isOnline.value
    // Events without a number are lost during the interruption.
    untracked(() => {
      if (active && !wasActive) void reopen()
      if (!isActive.value) pause()
    })
    wasActive = active
  })
  effect(() => {
    const waits = isActive.value ? isWaiting.value : isWaitingHidden.value
    document.title = `${waits ? "● " : ""}${sessionID.value === undefined ? "" : `${title.value} · `}Tackle`
  })
}

/** Loads and follows a session. Without an id, follows the list of sessions. */
async function load(id: string | undefined): Promise<void> {
  generation += 1
  const own = generation
  followed?.close()
  followed = undefined
  state.value = undefined
  loadError.value = undefined
  try {
    const session = id === undefined ? undefined : await api.sessions.get(id)
    if (own !== generation) return
    if (id !== undefined && !session)
      loadError.value = "This session does not exist. It may have been deleted."
    const opened = session && (await follow(oneStream(session), own))
    if (own !== generation) return opened?.close()
    followed = opened
    hasOlder.value = opened !== undefined && opened.state.messages.length >= pageSize
    state.value = opened?.state
  } catch (error) {
    if (own === generation) loadError.value = errorText(error)
  } finally {
    if (own === generation) {
      if (!followed) followList()
      // The list missed the events since the last stream ended.
      void loadSessions()
      if (!isActive.peek()) pause()
    }
  }
}

function follow(session: SessionApi, own: number): Promise<FollowedSession> {
  return followSession({
    api,
    session,
    pageSize,
    onChange: (next) => own === generation && show(next),
    onEvent: (event) => own === generation && report(event),
    onEnd(error) {
      if (own !== generation) return
      loadError.value = error === undefined ? "The session was deleted." : errorText(error)
      followed = undefined
      followList()
    },
  })
}

/**
 * Continues after the page was hidden or the server did not respond. Loads the data that the stream does not repeat.
 */
async function reopen(): Promise<void> {
  clearInterval(hiddenTimer)
  if (!isLoggedIn.value) return
  void loadSessions()
  if (!followed) return followList()
  try {
    await followed.reopen()
  } catch (error) {
    if (isOnline.value) loadError.value = errorText(error)
  }
}

/** Interval in milliseconds between checks of whether the session of a hidden page waits for the user. */
const hiddenCheckMs = 20_000
let hiddenTimer: ReturnType<typeof setInterval> | undefined

/** Closes the stream of a hidden page. Its title still shows when the agent waits for the user. */
function pause(): void {
  clearInterval(hiddenTimer)
  followNothing()
  if (!followed) return
  followed.pause()
  isWaitingHidden.value = isWaiting.value
  const { id } = followed.session
  hiddenTimer = setInterval(async () => {
    const status = await api.sessions.status(id).catch(() => undefined)
    isWaitingHidden.value = status === "waiting"
  }, hiddenCheckMs)
}

/** Loads a subagent's messages. */
export async function loadSubagent(id: string): Promise<void> {
  await attempt(async () => followed?.loadSubagent(id))
}

let isScheduled = false
let waiting: SessionState | undefined

/** Shows a state. Limits the updates, because streamed text arrives faster than a reader needs it. */
function show(next: SessionState): void {
  waiting = next
  if (isScheduled) return
  isScheduled = true
  setTimeout(() => {
    isScheduled = false
    if (waiting && waiting.session.id === sessionID.peek()) state.value = waiting
  }, 30)
}

/** Loads older messages. Does nothing if a load is already in progress. */
export async function loadOlder(): Promise<void> {
  if (!followed || isLoadingOlder || !hasOlder.value) return
  isLoadingOlder = true
  const own = followed
  try {
    const more = await own.loadOlder()
    if (own === followed) hasOlder.value = more
  } catch (error) {
    notify(errorText(error), "error")
  } finally {
    isLoadingOlder = false
  }
}

/** Returns the open session. Throws if no session is loaded. */
export function currentSession() {
  if (!followed) throw new Error("The session is not loaded. Try again in a moment.")
  return followed.session
}

/** Ids of the requests that were answered in this window. */
const answeredHere = new Set<string>()

/** Records that this window answers a request. */
export function answersHere(requestID: string): void {
  answeredHere.add(requestID)
}

const endings = {
  completed: "The agent has finished.",
  incomplete: "The answer is incomplete.",
  failed: "The run failed.",
  limit: "The run reached a limit.",
  interrupted: "The run was stopped.",
} as const

function report(event: TackleEvent): void {
  if (event.type === "permission.asked") announce(`Permission needed: ${event.request.permission}`)
  else if (event.type === "question.asked") announce("The agent has a question.")
  else if (event.type === "run.completed") announce(endings[event.status])
  else if (event.type === "question.replied" && !answeredHere.has(event.requestID))
    notify("The question was answered in another window.")
  else if (event.type === "permission.replied" && !answeredHere.has(event.requestID)) {
    const answers = { once: "allowed once", always: "always allowed", reject: "rejected" }
    const isByUser = event.source === "client" || event.source === "user"
    if (isByUser) notify(`The request was ${answers[event.reply]} in another window.`)
  }
}
