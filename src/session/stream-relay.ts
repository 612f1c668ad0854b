import type { Bus } from "../event/bus.ts"
import type { EventInput, TackleEvent } from "../event/events.ts"
import { isStreaming, withDelta } from "../event/part-delta.ts"
import type { Part } from "../schema/part.ts"
import type { LeaseHolder, Mail } from "../store/store.ts"
import { isRecord, parseJson } from "../util/json.ts"
import type { StreamingParts } from "./session-events.ts"
import { createLinkSender, type LinkAddress, type LinkReceiver, openLinkReceiver } from "./stream-link.ts"

/**
 * Passes events that the store does not contain, such as streamed text, from the engine that runs a session to the
 * engines that follow the session. Sends no events while no other engine follows the session.
 */
export interface StreamRelay {
  /** Requests a session's events. Returns a function that ends the request. */
  follow(sessionID: string): () => void
  /** Adds the parts that other engines stream to the parts of this engine. */
  partsOf(sessionID: string, own: StreamingParts): Pick<StreamingParts, "streaming" | "ended">
  close(): void
}

/** Options for {@link createStreamRelay}. */
interface RelayOptions {
  mail: Mail
  /** Address at which this engine receives events. See {@link openLinkReceiver}. */
  host: string
  bus: Bus
  holder: LeaseHolder
  /** Returns the parts that this engine streams in a session. */
  streaming(sessionID: string): readonly Part[]
  /**
   * Receives database errors. After an error, streamed text may be lost, but the complete text is stored at the end of
   * its part.
   */
  onProblem(error: unknown): void
}

/** Interval in milliseconds at which an engine announces again which sessions it follows. */
const repeatMs = 2_000

/** Time in milliseconds after which a follower is forgotten if it has not repeated its request. */
const forgetMs = 3 * repeatMs

/** Pause in milliseconds between two batches, so that many sessions share one batch. */
const batchMs = 15

/** Maximum number of characters in a frame. PostgreSQL accepts fewer than 8,000. */
const frameSize = 7_800

/** Number of complete parts that are remembered for each session. */
const rememberedParts = 1_000

/** The address at which engines announce which sessions they follow. */
const followersAddress = "followers"

/** A session that this engine follows. */
interface Followed {
  readers: number
  /** The parts that other engines stream. */
  parts: Map<string, Part>
  /** Ids of complete parts. Their streamed text may arrive after the stored part. */
  complete: Set<string>
}

/** An item of a batch: an event, or the id of a part that is complete. */
type Item = { event: EventInput } | { sessionID: string; ended: string }

/**
 * Creates the relay for an engine. Starts to listen when the first session runs or is followed. Engines that follow
 * sessions announce an address in the database. Events go directly to this address, or through the database if the
 * address cannot be reached.
 */
export function createStreamRelay({
  mail,
  host,
  bus,
  holder,
  streaming,
  onProblem,
}: RelayOptions): StreamRelay {
  const address = holder.id.toLowerCase().replaceAll(/[^a-z0-9_]/g, "")
  const followed = new Map<string, Followed>()
  /** The engines that follow each session, with the time at which each engine is forgotten. */
  const followers = new Map<string, Map<string, number>>()
  /** Time of the next cleanup, which removes expired followers even if their session does not run here. */
  let forgetAt = 0
  /** Items for each engine. */
  let waiting = new Map<string, Item[]>()
  let isSending = false
  const links = createLinkSender()
  /** Addresses of the engines that follow sessions. */
  const linksTo = new Map<string, LinkAddress>()
  let receiver: LinkReceiver | undefined
  /** True while this engine publishes an event from another engine. */
  let isForeign = false
  const ends: (() => void)[] = []
  let isListening = false
  let isReceiving = false
  let isClosed = false
  let repeating: NodeJS.Timeout | undefined

  ends.push(bus.subscribe(onEvent))

  function onEvent(event: TackleEvent): void {
    if (isForeign) return
    // A run starts with a new message. Listening from then on finds the followers before text is streamed.
    if (event.type === "message.created") listen()
    const present = followersOf(event.sessionID)
    if (present.length === 0) return
    const item = itemOf(event)
    if (item) for (const to of present) enqueue(to, item)
  }

  /** Starts to listen for announcements from other engines. */
  function listen(): void {
    if (isListening) return
    isListening = true
    ends.push(
      mail.listen(followersAddress, onFollower, () =>
        post(followersAddress, [JSON.stringify({ who: address })]),
      ),
    )
  }

  function onFollower(text: string): void {
    const message = parseJson(text)
    if (!message.ok || !isRecord(message.value)) return
    const { from, sessions, who, link } = message.value
    if (typeof who === "string" && who !== address) announce()
    if (typeof from !== "string" || from === address || !Array.isArray(sessions)) return
    if (link) linksTo.set(from, link as LinkAddress)
    for (const sessionID of sessions) {
      if (typeof sessionID !== "string") continue
      const known = followers.get(sessionID) ?? new Map<string, number>()
      const isNew = (known.get(from) ?? 0) < performance.now()
      followers.set(sessionID, known.set(from, performance.now() + forgetMs))
      if (isNew) for (const part of streaming(sessionID)) enqueue(from, { event: snapshot(part) })
    }
    forgetFollowers()
  }

  function forgetFollowers(): void {
    if (performance.now() < forgetAt) return
    forgetAt = performance.now() + forgetMs
    for (const sessionID of followers.keys()) followersOf(sessionID)
  }

  function followersOf(sessionID: string): string[] {
    const known = followers.get(sessionID)
    if (!known) return []
    for (const [engine, until] of known) if (until < performance.now()) known.delete(engine)
    if (known.size === 0) followers.delete(sessionID)
    return [...known.keys()]
  }

  function enqueue(to: string, item: Item): void {
    let items = waiting.get(to) ?? []
    // A short part may be complete before its text is sent.
    if ("ended" in item) items = items.filter((each) => partOf(each) !== item.ended)
    const last = items.at(-1)
    const joined = last && joinDeltas(last, item)
    if (joined) items[items.length - 1] = joined
    else items.push(item)
    waiting.set(to, items)
    if (!isSending) void sendAll()
  }

  async function sendAll(): Promise<void> {
    isSending = true
    while (waiting.size > 0) {
      const batches = waiting
      waiting = new Map()
      for (const [to, items] of batches) {
        const json = JSON.stringify(items)
        const link = linksTo.get(to)
        if (!link || !(await links.send(link, json))) await post(to, framesOf(address, json))
      }
      await new Promise((resolve) => setTimeout(resolve, batchMs))
    }
    isSending = false
  }

  async function post(to: string, texts: readonly string[]): Promise<void> {
    await mail.send(to, texts).catch((error: unknown) => {
      if (!isClosed) onProblem(error)
    })
  }

  /** Announces to the other engines which sessions this engine follows. */
  function announce(ids: readonly string[] = [...followed.keys()]): void {
    const link = receiver?.address
    for (let start = 0; start < ids.length; start += 100)
      void post(followersAddress, [
        JSON.stringify({ from: address, sessions: ids.slice(start, start + 100), link }),
      ])
  }

  /** Starts to receive events from other engines. */
  function receive(): void {
    if (isReceiving) return
    isReceiving = true
    // An engine that starts to run a session asks which engines follow it.
    listen()
    const join = createJoiner(onItems)
    // If no port can be opened, the events come through the database.
    const opened = openLinkReceiver(host, (text) => {
      const items = parseJson(text)
      if (items.ok && Array.isArray(items.value)) onItems(items.value as Item[])
    }).then(
      (open) => {
        if (isClosed) open.close()
        receiver = open
      },
      () => {},
    )
    ends.push(mail.listen(address, join, () => void opened.then(() => announce())))
    repeating = setInterval(() => announce(), repeatMs).unref()
  }

  function onItems(items: readonly Item[]): void {
    for (const item of items) {
      const entry = followed.get("event" in item ? item.event.sessionID : item.sessionID)
      if (!entry) continue
      if ("ended" in item) complete(entry, item.ended)
      else if (keep(item.event, entry)) publish(item.event)
    }
  }

  function complete(entry: Followed, partID: string): void {
    entry.parts.delete(partID)
    entry.complete.add(partID)
    const [oldest] = entry.complete
    if (entry.complete.size > rememberedParts && oldest !== undefined) entry.complete.delete(oldest)
  }

  /** Updates the streamed parts. Returns false for an event about a part that is complete or unknown. */
  function keep(event: EventInput, { parts, complete }: Followed): boolean {
    if (event.type === "part.updated") {
      if (complete.has(event.part.id)) return false
      parts.set(event.part.id, event.part)
    }
    if (event.type !== "part.delta") return true
    const part = parts.get(event.partID)
    if (part) parts.set(part.id, withDelta(part, event))
    return part !== undefined
  }

  function publish(event: EventInput): void {
    isForeign = true
    bus.publish(event)
    isForeign = false
  }

  return {
    follow(sessionID) {
      const entry: Followed = followed.get(sessionID) ?? { readers: 0, parts: new Map(), complete: new Set() }
      entry.readers += 1
      followed.set(sessionID, entry)
      if (!isReceiving) receive()
      else if (entry.readers === 1) announce([sessionID])
      let isEnded = false
      return () => {
        if (!isEnded) entry.readers -= 1
        isEnded = true
        if (entry.readers === 0) followed.delete(sessionID)
      }
    },
    partsOf: (sessionID, own) => ({
      streaming: () => [...own.streaming(), ...(followed.get(sessionID)?.parts.values() ?? [])],
      ended(partID) {
        const entry = followed.get(sessionID)
        if (entry) complete(entry, partID)
      },
    }),
    close() {
      isClosed = true
      clearInterval(repeating)
      for (const end of ends) end()
      links.close()
      receiver?.close()
    },
  }
}

/** Returns the item that reports an event to followers, or undefined for an event that the store announces. */
function itemOf(event: TackleEvent): Item | undefined {
  switch (event.type) {
    case "part.updated":
      return isStreaming(event.part)
        ? { event: snapshot(event.part) }
        : { sessionID: event.sessionID, ended: event.part.id }
    case "part.delta":
    case "session.error":
    case "context.filling":
    case "run.completed": {
      const { time: _, ...rest } = event
      return { event: rest }
    }
    default:
      return undefined
  }
}

/** Returns the id of the part that an item is about. */
function partOf(item: Item): string | undefined {
  if ("ended" in item) return item.ended
  if (item.event.type === "part.updated") return item.event.part.id
  return item.event.type === "part.delta" ? item.event.partID : undefined
}

function snapshot(part: Part): EventInput {
  return { type: "part.updated", sessionID: part.sessionID, part }
}

/** Joins two deltas of the same field of one part. Returns undefined for any other pair of items. */
function joinDeltas(first: Item, second: Item): Item | undefined {
  if (!("event" in first && "event" in second)) return undefined
  const [before, after] = [first.event, second.event]
  if (before.type !== "part.delta" || after.type !== "part.delta") return undefined
  if (before.partID !== after.partID || before.field !== after.field) return undefined
  return { event: { ...before, delta: before.delta + after.delta } }
}

/**
 * Splits a text into frames of ASCII. A frame starts with its sender, its number, and `+` if more frames follow. The
 * number makes each frame unique, because PostgreSQL drops repeated notifications.
 */
function framesOf(sender: string, json: string): string[] {
  const ascii = json.replaceAll(
    /[^\x20-\x7e]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  )
  const count = Math.max(1, Math.ceil(ascii.length / frameSize))
  return Array.from({ length: count }, (_, index) => {
    const more = index < count - 1 ? "+" : "."
    return `${sender} ${index}${more}${ascii.slice(index * frameSize, (index + 1) * frameSize)}`
  })
}

/** Returns a receiver that joins frames and passes on the items of complete messages. */
function createJoiner(onItems: (items: readonly Item[]) => void): (frame: string) => void {
  const texts = new Map<string, { next: number; text: string }>()
  return (frame) => {
    const [, sender = "", number, more, text = ""] = /^(\S+) (\d+)([+.])(.*)$/s.exec(frame) ?? []
    const index = Number(number)
    const known = index === 0 ? { next: 0, text: "" } : texts.get(sender)
    // The beginning of the message was lost.
    if (known?.next !== index) {
      texts.delete(sender)
      return
    }
    if (more === "+") {
      texts.set(sender, { next: index + 1, text: known.text + text })
      return
    }
    texts.delete(sender)
    const parsed = parseJson(known.text + text)
    if (parsed.ok && Array.isArray(parsed.value)) onItems(parsed.value as Item[])
  }
}
