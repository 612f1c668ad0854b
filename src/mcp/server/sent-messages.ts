import { randomUUID } from "node:crypto"
import type { EventStore } from "@modelcontextprotocol/server"

type Message = Parameters<EventStore["storeEvent"]>[1]

/** What is kept of one session, for a client that comes back. Bytes are counted as JSON. */
interface SentLimits {
  messages: number
  bytes: number
}

/** A long output is some 50 KB; a picture or a file may be more than all that is kept, and is kept alone then. */
const defaultLimits: SentLimits = { messages: 500, bytes: 4 * 1024 * 1024 }

/**
 * The last messages that went out to one client, so that a stream which broke, or which the server ended, goes on where
 * the client heard it last. The oldest go first, the newest stays whatever its size. A client that names one which is
 * not kept any more is refused: it would lack some of the messages without knowing it.
 */
export function createSentMessages(limits: SentLimits = defaultLimits): Required<EventStore> {
  let kept: { id: string; stream: string; message: Message; bytes: number }[] = []
  let bytes = 0

  function dropOldest(): void {
    let surplus = 0
    while (surplus < kept.length - 1 && (kept.length - surplus > limits.messages || bytes > limits.bytes)) {
      bytes -= kept[surplus]?.bytes ?? 0
      surplus += 1
    }
    if (surplus > 0) kept = kept.slice(surplus)
  }

  return {
    async storeEvent(stream, message) {
      const id = randomUUID()
      const size = JSON.stringify(message).length
      kept.push({ id, stream, message, bytes: size })
      bytes += size
      dropOldest()
      return id
    },
    async getStreamIdForEventId(id) {
      return kept.find((entry) => entry.id === id)?.stream
    },
    async replayEventsAfter(lastID, { send }) {
      const at = kept.findIndex(({ id }) => id === lastID)
      const last = kept[at]
      if (!last) throw new Error("The message after which the client goes on is not kept any more.")
      for (const { id, stream, message } of kept.slice(at + 1)) {
        // What opened the stream anew says nothing.
        if (stream === last.stream && "jsonrpc" in message) await send(id, message)
      }
      return last.stream
    },
  }
}
