import { computed, effect, signal } from "@preact/signals"
import type { TackleEvent } from "../src/event/events.ts"
import { type FollowedSession, followSession } from "../src/view/follow-session.ts"
import type { SessionState } from "../src/view/session-state.ts"
import { api, isLoggedIn, isOnline } from "./connection.ts"
import { errorText } from "./errors.ts"
import { announce, notify } from "./notices.tsx"

/** Id of the open session, or undefined on the start page. It is the fragment of the page's address. */
export const sessionID = signal(idInAddress())

/** State of the open session. Undefined while it loads. */
export const state = signal<SessionState | undefined>(undefined)

/** Reason why the session cannot be shown. */
export const loadError = signal<string | undefined>(undefined)

/** True if older messages may exist on the server. */
export const hasOlder = signal(false)

/** Title of the open session. */
export const title = computed(() => state.value?.session.title || "New session")

const pageSize = 100
let followed: FollowedSession | undefined
let generation = 0
let isLoadingOlder = false

function idInAddress(): string | undefined {
  return /^#(ses_\w+)$/.exec(location.hash)?.[1]
}

/** Opens a session, or the start page. */
export function openSession(id: string | undefined): void {
  history.pushState(null, "", id === undefined ? "/" : `/#${id}`)
  sessionID.value = id
}

/** Follows the session in the page's address. Loads it again when the server answers again. */
export function followAddress(): void {
  for (const type of ["popstate", "hashchange"])
    addEventListener(type, () => {
      sessionID.value = idInAddress()
    })
  effect(() => {
    const id = sessionID.value
    if (isLoggedIn.value) void load(id, { keep: false })
  })
  let wasOnline = true
  effect(() => {
    const online = isOnline.value
    // Events of the interruption that have no number are lost.
    if (online && !wasOnline) void load(sessionID.peek(), { keep: true })
    wasOnline = online
  })
  effect(() => {
    const waits = (state.value?.requests.length ?? 0) + (state.value?.questions.length ?? 0) > 0
    document.title = `${waits ? "● " : ""}${sessionID.value === undefined ? "" : `${title.value} · `}Tackle`
  })
}

/** Loads and follows a session. With `keep`, shows the previous state until the new one is loaded. */
async function load(id: string | undefined, { keep }: { keep: boolean }): Promise<void> {
  generation += 1
  const own = generation
  followed?.close()
  followed = undefined
  if (!keep) state.value = undefined
  loadError.value = undefined
  if (id === undefined) return
  try {
    const session = await api.sessions.get(id)
    if (own !== generation) return
    if (!session) {
      loadError.value = "This session does not exist. It may have been deleted."
      return
    }
    const opened = await followSession({
      api,
      session,
      pageSize,
      onChange: (next) => own === generation && show(next),
      onEvent: (event) => own === generation && report(event),
      onEnd(error) {
        if (own === generation)
          loadError.value = error === undefined ? "The session was deleted." : errorText(error)
      },
    })
    if (own !== generation) return opened.close()
    followed = opened
    hasOlder.value = opened.state.messages.length >= pageSize
    state.value = opened.state
  } catch (error) {
    if (own === generation) loadError.value = errorText(error)
  }
}

let isScheduled = false
let waiting: SessionState | undefined

/** Shows a state. Streamed text arrives faster than a reader needs it. */
function show(next: SessionState): void {
  waiting = next
  if (isScheduled) return
  isScheduled = true
  setTimeout(() => {
    isScheduled = false
    if (waiting && waiting.session.id === sessionID.peek()) state.value = waiting
  }, 30)
}

/** Loads older messages. Does nothing while it loads some. */
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

/** Returns the open session. Throws if no session is open. */
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

function report(event: TackleEvent): void {
  if (event.type === "permission.asked") announce(`Permission needed: ${event.request.permission}`)
  else if (event.type === "question.asked") announce("The agent has a question.")
  else if (event.type === "run.completed")
    announce(event.status === "completed" ? "The agent has finished." : `The run ended: ${event.status}.`)
  else if (event.type === "question.replied" && !answeredHere.has(event.requestID))
    notify("The question was answered in another window.")
  else if (event.type === "permission.replied" && !answeredHere.has(event.requestID)) {
    const answers = { once: "allowed once", always: "allowed from now on", reject: "rejected" }
    const isByUser = event.source === "client" || event.source === "user"
    if (isByUser) notify(`Answered in another window: ${answers[event.reply]}.`)
  }
}
