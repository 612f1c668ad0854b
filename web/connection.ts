import { signal } from "@preact/signals"
import { createClient, type TackleClient } from "../src/client/client.ts"
import type { TackleEvent } from "../src/event/events.ts"

/** False while the server does not answer. */
export const isOnline = signal(true)

/** False until the server has accepted the cookie of this browser, and after it has refused it. */
export const isLoggedIn = signal<boolean | undefined>(undefined)

/** Fetches like `fetch`, and records whether the server answers and accepts the login. */
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

/** Returns a client for the project in the directory. Without a directory, for all projects. */
export function clientOf(directory?: string): TackleClient {
  return createClient({ url: location.origin, directory, fetch: watchedFetch, onProblem: () => {} })
}

const client = clientOf()
const listeners = new Set<(event: TackleEvent) => void>()
let unsubscribe: (() => void) | undefined

/** Calls the listener for all events. All listeners share one stream, because browsers limit connections to a server. */
function subscribe(listener: (event: TackleEvent) => void): () => void {
  listeners.add(listener)
  unsubscribe ??= client.subscribe((event) => {
    for (const each of listeners) each(event)
  })
  return () => {
    listeners.delete(listener)
    if (listeners.size > 0) return
    unsubscribe?.()
    unsubscribe = undefined
  }
}

/** The client of this page for all projects. */
export const api: TackleClient = Object.assign(Object.create(client) as TackleClient, { subscribe })

/** Returns the directories whose projects the server serves. */
export async function readRoots(): Promise<string[]> {
  const response = await watchedFetch("/root")
  const { items } = (await response.json()) as { items: { directory: string }[] }
  return items.map(({ directory }) => directory)
}
