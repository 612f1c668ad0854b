import type { Tackle } from "../engine/tackle.ts"
import type { SessionEvent } from "../session/session-events.ts"
import { type Channel, createChannel } from "../util/channel.ts"
import type { ServerContext } from "./context.ts"

/** A session, and the number of its last change that the client knows. Default: its latest change. */
export interface FollowedSession {
  id: string
  after?: number
}

/** The last item for a client that reads too slowly. It belongs to no session. */
const behind = { type: "reset", reason: "behind" } as const

/** An item of the stream. */
type Item = SessionEvent | typeof behind

/**
 * Returns the events of several sessions in one stream, as if the client followed each of them, and the events of all
 * other sessions as they happen. Ignores sessions that do not exist, that the server does not serve or that belong to
 * another tenant, and sessions whose project cannot be opened. The stream ends after a reset of one of the sessions, and when the server stops.
 */
export async function followSessions(
  context: ServerContext,
  { sessions, tenant }: { sessions: readonly FollowedSession[]; tenant: string | undefined },
): Promise<{ events: Channel<Item>; onEnd(): void }> {
  const { engines, store, maxWaiting } = context
  const ending = context.streamSignal("")
  const releases = [ending.release]
  const onEnd = () => {
    for (const release of releases) release()
  }
  const channel = createChannel<Item>(onEnd)
  let limit = maxWaiting

  function push(event: SessionEvent): void {
    channel.push(event)
    if (channel.size <= limit) return
    channel.drain()
    channel.push(behind)
    end()
  }

  function end(): void {
    onEnd()
    channel.end()
  }

  async function follow(tackle: Tackle, { id, after }: FollowedSession): Promise<void> {
    const handle = await tackle.sessions.get(id)
    if (!handle) return
    // Stored changes do not mean that the client is slow.
    if (after !== undefined) limit += Math.max(0, (await store.sequence(id)) - after)
    const events = handle.events({ after, signal: ending.signal, maxWaiting })
    void (async () => {
      for await (const event of events) {
        push(event)
        if (event.type === "reset") return end()
      }
    })().catch(end)
  }

  try {
    const followed = new Set<string>()
    for (const each of sessions) {
      const session = await store.session(each.id)
      const isVisible = session && (tenant === undefined || session.tenant === tenant)
      if (!isVisible || !engines.isServed(session.directory)) continue
      // A project that cannot be opened must not end the stream of the other sessions.
      const held = await engines.hold(session.directory).catch(() => undefined)
      if (!held) continue
      releases.push(held.release)
      followed.add(each.id)
      await follow(held.tackle, each)
    }
    const listener = (event: SessionEvent) => followed.has(event.sessionID) || push(event)
    releases.push(context.followEvents(listener, tenant))
    ending.signal.addEventListener("abort", () => channel.end(), { once: true })
  } catch (error) {
    onEnd()
    throw error
  }
  return { events: channel, onEnd }
}
