import { computed, signal } from "@preact/signals"
import type { RemoteSession } from "../src/client/sessions.ts"
import type { TackleEvent } from "../src/event/events.ts"
import { api } from "./connection.ts"
import { attempt } from "./notices.tsx"

/** Number of sessions that are loaded at once. */
const pageSize = 50

/** The newest sessions on the server, most recently changed first. Undefined until they are loaded. */
const sessions = signal<readonly RemoteSession[] | undefined>(undefined)

/** Search words. Empty if no search is active. */
export const search = signal("")

/** Results of the latest finished search. Undefined if no search is active. */
const found = signal<readonly RemoteSession[] | undefined>(undefined)

/** True if the server has more sessions than are loaded. */
export const hasMore = signal(false)

/** The sessions in the list: all sessions, or the search results. */
export const shownSessions = computed(() => (search.value.trim() === "" ? sessions.value : found.value))

/** Directories of the known sessions, most recently used first. */
export const knownDirectories = computed(() => [
  ...new Set((sessions.value ?? []).map(({ directory }) => directory)),
])

let limit = pageSize

/** Loads the newest sessions. */
export async function loadSessions(): Promise<void> {
  const loaded = await attempt(() => api.sessions.list({ everywhere: true, limit: limit + 1 }))
  if (!loaded) return
  hasMore.value = loaded.length > limit
  sessions.value = loaded.slice(0, limit)
}

/** Loads more sessions. */
export async function loadMoreSessions(): Promise<void> {
  limit += pageSize
  await loadSessions()
}

let searchTimer: ReturnType<typeof setTimeout> | undefined

/** Searches the titles and texts of all sessions, after a pause in typing. */
export function searchSessions(words: string): void {
  clearTimeout(searchTimer)
  if (words.trim() === "") found.value = undefined
  search.value = words
  if (words.trim() === "") return
  searchTimer = setTimeout(async () => {
    const hits = await attempt(() => api.sessions.list({ everywhere: true, limit: pageSize, search: words }))
    if (hits && search.value === words) found.value = hits
  }, 200)
}

/** Keeps the list up to date until the returned function is called. */
export function followSessions(): () => void {
  return api.subscribe(applyToList)
}

function applyToList(event: TackleEvent): void {
  switch (event.type) {
    case "session.created":
    case "session.updated": {
      const { session, sessionID } = event
      if (session.parentID !== undefined) return
      const known = sessions.value?.find(({ id }) => id === sessionID)
      const entry: RemoteSession = { status: "idle", seq: 0, ...known, ...session }
      const others = (sessions.value ?? []).filter(({ id }) => id !== sessionID)
      sessions.value = [entry, ...others].sort((a, b) => b.time.updated - a.time.updated)
      return
    }
    case "message.created":
      setStatus(event.sessionID, "running")
      return
    case "run.completed":
      setStatus(event.sessionID, "idle")
      return
    case "permission.asked":
    case "question.asked":
      setStatus(event.request.tool?.parent?.sessionID ?? event.sessionID, "waiting")
      return
    case "permission.replied":
    case "question.replied":
    case "question.rejected":
      setStatus(event.sessionID, "running")
      return
  }
}

function setStatus(id: string, status: RemoteSession["status"]): void {
  sessions.value = sessions.value?.map((session) =>
    session.id === id && session.status !== status ? { ...session, status } : session,
  )
}

/** Removes a session from the list. */
export function removeSession(id: string): void {
  sessions.value = sessions.value?.filter((session) => session.id !== id)
  found.value = found.value?.filter((session) => session.id !== id)
}
