import type { TackleClient } from "../../src/client/index.ts"
import type { SessionClient } from "../../src/client/sessions.ts"
import type { SessionEvent } from "../../src/session/session-events.ts"

/** A session that a client follows. */
export interface ScaleSession {
  /** Name in the prompts, such as `s7`. */
  name: string
  session: SessionClient
  /** Sends the prompt of a turn, and waits until the session is idle. */
  turn(number: number): Promise<void>
  onEvent(listener: (event: SessionEvent) => void): void
  close(): void
}

/**
 * Time in milliseconds after which a turn no longer waits for the event that reports its end. The event is not stored,
 * so a client can miss it.
 */
const silentMs = 10_000

/** Creates a session and follows it. */
export async function openSession(client: TackleClient, name: string): Promise<ScaleSession> {
  const session = await client.sessions.create({ title: name })
  const listeners: ((event: SessionEvent) => void)[] = []
  const ending = new AbortController()
  let completed = Promise.withResolvers<void>()
  const following = (async () => {
    for await (const event of session.events({ after: 0, signal: ending.signal })) {
      for (const listener of listeners) listener(event)
      if (event.type === "run.completed") completed.resolve()
    }
  })()
  following.catch(() => {})
  return {
    name,
    session,
    async turn(number) {
      completed = Promise.withResolvers<void>()
      await session.send(`${name} ${number}`, { id: `inp_${name}_${number}` })
      let timer: NodeJS.Timeout | undefined
      const late = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, silentMs)
      })
      await Promise.race([completed.promise, late])
      clearTimeout(timer)
      // Waits even after the event, because another worker may continue an interrupted run.
      await session.wait()
    },
    onEvent: (listener) => void listeners.push(listener),
    close: () => ending.abort(),
  }
}
