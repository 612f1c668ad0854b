import { signal } from "@preact/signals"
import type { SessionApi } from "../src/client/api.ts"
import { createClient, type TackleClient } from "../src/client/client.ts"
import type { SessionClient } from "../src/client/sessions.ts"
import type { TackleEvent } from "../src/event/events.ts"
import type { SessionEvent } from "../src/session/session-events.ts"

/** False while the server does not respond. */
export const isOnline = signal(true)

/** True while the server accepts this browser's cookie. Undefined until the first check. */
export const isLoggedIn = signal<boolean | undefined>(undefined)

/** Calls `fetch`, and records whether the server responds and accepts the login. */
async function watchedFetch(...request: Parameters<typeof fetch>): Promise<Response> {
  try {
    const response = await fetch(...request)
    isOnline.value = true
    if (response.status === 401) isLoggedIn.value = false
    return response
  } catch (error) {
    if (!request[1]?.signal?.aborted) isOnline.value = false
    throw error
  }
}

/** Returns a client for the project in the directory, or for all projects without a directory. */
export function clientOf(directory?: string): TackleClient {
  return createClient({ url: location.origin, directory, fetch: watchedFetch, onProblem: () => {} })
}

const client = clientOf()
const listeners = new Set<(event: TackleEvent) => void>()

function publish(event: TackleEvent): void {
  for (const each of listeners) each(event)
}

/**
 * This page's client for all projects. `subscribe` does not open a stream. The listener receives events from the only
 * open stream (see {@link oneStream} and {@link followAll}), because a browser allows at most six connections to a
 * server across all windows.
 */
export const api: TackleClient = Object.assign(Object.create(client) as TackleClient, {
  subscribe(listener: (event: TackleEvent) => void) {
    listeners.add(listener)
    return () => listeners.delete(listener)
  },
})

/**
 * Returns the session with a stream that also passes its events, and those from all other sessions, to the listeners.
 */
export function oneStream(session: SessionClient): SessionApi {
  async function* relay(events: AsyncIterable<SessionEvent>) {
    for await (const event of events) {
      if (event.type !== "reset") publish(event)
      if (event.sessionID === session.id) yield event
    }
  }
  // The stream opens immediately, so that later reads miss nothing.
  return { ...session, events: (options) => relay(session.events({ ...options, others: true })) }
}

/** Opens a stream with events from all sessions. Returns a function that ends the stream. */
export function followAll(): () => void {
  return client.subscribe(publish)
}

/** Time in milliseconds after which a hidden page closes its stream, so that other windows can open theirs. */
const hiddenMs = 10_000

/** False while the page is hidden, after the first {@link hiddenMs}. */
export const isActive = signal(true)

/** Starts watching whether the page is hidden. */
export function watchVisibility(): void {
  let timer: ReturnType<typeof setTimeout> | undefined
  const update = () => {
    clearTimeout(timer)
    if (document.visibilityState === "visible") isActive.value = true
    else
      timer = setTimeout(() => {
        isActive.value = false
      }, hiddenMs)
  }
  document.addEventListener("visibilitychange", update)
  update()
}

/** Returns the directories whose projects the server serves. */
export async function readRoots(): Promise<string[]> {
  const response = await watchedFetch("/root")
  const { items } = (await response.json()) as { items: { directory: string }[] }
  return items.map(({ directory }) => directory)
}
