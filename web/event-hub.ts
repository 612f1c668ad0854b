import { retryDelay } from "../src/client/connection.ts"
import { streamItems } from "../src/client/event-stream.ts"
import type { SessionEvent } from "../src/session/session-events.ts"

/**
 * A message from the hub to a window. `opened` names the window's latest request that the stream includes. `missed` is
 * true if events without a number may have been lost.
 */
export type HubMessage =
  | { type: "event"; event: SessionEvent }
  | { type: "opened"; request: number; missed: boolean }
  | { type: "lost" }
  | { type: "rejected"; status: number }

/** A message from a window to the hub. Without `session`, the window follows only the list of sessions. */
export type WindowMessage =
  | { type: "follow"; request: number; session?: { id: string; after: number } }
  | { type: "leave" }

type Send = (message: HubMessage) => void

/** The session that a window follows. Only a stream that includes this request sends its events. */
type Followed = Extract<WindowMessage, { type: "follow" }> & { isIncluded: boolean }

/** Time in milliseconds without data after which the connection counts as lost. */
const silenceMs = 45_000

/** Time in milliseconds in which the requests of several windows become one. */
const gatherMs = 10

/**
 * Follows the sessions of all windows with one event stream. Returns a function that adds a window, which receives
 * messages through `send`.
 */
export function createEventHub(): (send: Send) => (message: WindowMessage) => void {
  const windows = new Map<Send, Followed>()
  let current: AbortController | undefined
  /** True from the end of a stream that the hub did not end itself until the next stream is open. */
  let isInterrupted = false
  let timer: ReturnType<typeof setTimeout> | undefined

  function tell(message: HubMessage): void {
    for (const send of windows.keys()) send(message)
  }

  function change(): void {
    clearTimeout(timer)
    timer = setTimeout(() => {
      if (windows.size > 0) return void read()
      current?.abort()
      current = undefined
    }, gatherMs)
  }

  /** Returns the address of a stream that repeats what at least one window has not received. */
  function address(): string {
    const after = new Map<string, number>()
    for (const { session } of windows.values())
      if (session) after.set(session.id, Math.min(session.after, after.get(session.id) ?? session.after))
    const follow = [...after].map(([id, number]) => `${id}:${number}`).join(",")
    return follow === "" ? "/event" : `/event?follow=${follow}`
  }

  /** Reads streams until another call follows. The previous stream is read until the new stream is open. */
  async function read(): Promise<void> {
    const previous = current
    const own = new AbortController()
    current = own
    const { signal } = own
    for (let attempt = 1; !signal.aborted; attempt += 1) {
      const included = [...windows]
      const response = await fetch(address(), { signal }).catch(() => undefined)
      previous?.abort()
      if (signal.aborted) return
      if (response?.ok) {
        for (const [send, followed] of included) {
          followed.isIncluded = true
          send({ type: "opened", request: followed.request, missed: isInterrupted })
        }
        isInterrupted = false
        for await (const event of streamItems<SessionEvent>(response, { silenceMs, signal })) {
          attempt = 0
          deliver(event)
        }
      } else if (response && response.status < 500 && response.status !== 429)
        return tell({ type: "rejected", status: response.status })
      else if (!signal.aborted) tell({ type: "lost" })
      if (signal.aborted) return
      isInterrupted = true
      await new Promise((resolve) => setTimeout(resolve, retryDelay(Math.max(attempt, 1))))
    }
  }

  function deliver(event: SessionEvent): void {
    for (const [send, { session, isIncluded }] of windows) {
      const isOwn = session?.id === event.sessionID
      if (isOwn && !isIncluded) continue
      if (event.type === "reset") {
        // After `behind`, the next stream repeats what was not received.
        if (!isOwn || event.reason === "behind") continue
        session.after = 0
      } else if (isOwn && event.seq !== undefined) {
        if (event.seq <= session.after) continue
        session.after = event.seq
      }
      send({ type: "event", event })
    }
  }

  return (send) => (message) => {
    if (message.type === "follow") windows.set(send, { ...message, isIncluded: false })
    else windows.delete(send)
    change()
  }
}
