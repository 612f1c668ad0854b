import { signal } from "@preact/signals"
import type { SessionApi } from "../src/client/api.ts"
import { createClient, type TackleClient } from "../src/client/client.ts"
import type { TackleEvent } from "../src/event/events.ts"
import type { SessionEvent } from "../src/session/session-events.ts"
import { type Channel, createChannel } from "../src/util/channel.ts"
import { createEventHub, type HubMessage, type WindowMessage } from "./event-hub.ts"

/** False while the server does not respond. */
export const isOnline = signal(true)

/** True while the server accepts this browser's cookie. Undefined until the first check. */
export const isLoggedIn = signal<boolean | undefined>(undefined)

/** Calls `fetch`, and records whether the server responds and accepts the login. */
async function watchedFetch(...request: Parameters<typeof fetch>): Promise<Response> {
  await opening.promise
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

/**
 * This page's client for all projects. `subscribe` does not open a stream. The listener receives events from the only
 * open stream, because a browser allows at most six connections to a server across all windows.
 */
export const api: TackleClient = Object.assign(Object.create(client) as TackleClient, {
  subscribe(listener: (event: TackleEvent) => void) {
    listeners.add(listener)
    return () => listeners.delete(listener)
  },
})

const send = connectToHub(receive)

/** Number of the latest request to the hub. */
let request = 0
let opening = Promise.withResolvers<void>()
opening.resolve()

/** The events of the session that this window follows. */
let own: { id: string; events: Channel<SessionEvent> } | undefined

function receive(message: HubMessage): void {
  if (message.type === "event") {
    const { event } = message
    if (event.type !== "reset") for (const each of listeners) each(event)
    if (event.sessionID !== own?.id) return
    own.events.push(event)
    if (event.type === "session.deleted") own.events.end()
    return
  }
  if (message.type === "opened") {
    if (message.missed) isOnline.value = false
    isOnline.value = true
    if (message.request !== request) return
  } else if (message.type === "lost") isOnline.value = false
  else if (message.status === 401) isLoggedIn.value = false
  opening.resolve()
}

/** Follows a session, or only the list of sessions. Later requests of this window wait until the stream is open. */
function follow(session?: { id: string; after: number }): void {
  request += 1
  opening.resolve()
  opening = Promise.withResolvers()
  send({ type: "follow", request, ...(session && { session }) })
}

/** Returns the session with events from the stream that all windows of the browser share. */
export function oneStream(session: SessionApi): SessionApi {
  return {
    ...session,
    events({ after = 0, signal } = {}) {
      const events = createChannel<SessionEvent>(() => {})
      signal?.addEventListener("abort", () => events.end(), { once: true })
      own = { id: session.id, events }
      follow({ id: session.id, after })
      return events
    },
  }
}

/** Follows the list of sessions only. */
export function followList(): void {
  own = undefined
  follow()
}

/** Stops following. The stream closes when no window of the browser follows anything. */
export function followNothing(): void {
  own = undefined
  opening.resolve()
  send({ type: "leave" })
}

/** Connects to the hub in the browser's shared worker, or, if the browser has none, to a hub in this window. */
function connectToHub(receive: (message: HubMessage) => void): (message: WindowMessage) => void {
  if (typeof SharedWorker === "undefined") return createEventHub()(receive)
  const { port } = new SharedWorker("/assets/event-worker.js")
  port.onmessage = ({ data }: MessageEvent<HubMessage>) => receive(data)
  return (message) => port.postMessage(message)
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
  addEventListener("pagehide", () => {
    isActive.value = false
  })
  addEventListener("pageshow", update)
  update()
}

/** Returns the directories whose projects the server serves. */
export async function readRoots(): Promise<string[]> {
  const response = await watchedFetch("/root")
  const { items } = (await response.json()) as { items: { directory: string }[] }
  return items.map(({ directory }) => directory)
}
