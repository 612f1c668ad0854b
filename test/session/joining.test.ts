import fc from "fast-check"
import { expect, test } from "vitest"
import { createBus } from "../../src/event/bus.ts"
import type { Part } from "../../src/schema/part.ts"
import { pending, start } from "../../src/schema/tool-moves.ts"
import { createRecorder } from "../../src/session/recorder.ts"
import { type SessionEvent, streamSessionEvents } from "../../src/session/session-events.ts"
import { createMemoryStore } from "../../src/store/memory.ts"
import type { Store } from "../../src/store/store.ts"
import { runs } from "../runs.ts"
import { aMessage, aSession } from "../suites/records.ts"

const sessionID = "ses_1"

/** One action of a model, another engine or a reader. */
type Action =
  | { kind: "begin"; type: "text" | "reasoning" | "tool" }
  | { kind: "grow" | "end" | "remove"; index: number }
  | { kind: "announce" | "foreign" | "turn" | "tick" }
  | { kind: "join"; wait: boolean }

const index = fc.nat({ max: 5 })
const action: fc.Arbitrary<Action> = fc.oneof(
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant("begin"), type: fc.constantFrom("text", "reasoning", "tool") }),
  },
  { weight: 6, arbitrary: fc.record({ kind: fc.constant("grow"), index }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom("end", "remove"), index }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("announce") }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom("foreign", "turn") }) },
  { weight: 6, arbitrary: fc.record({ kind: fc.constant("tick") }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("join"), wait: fc.boolean() }) },
) as fc.Arbitrary<Action>

/** A view of the parts of a session that knows only its events. */
function createView() {
  const parts = new Map<string, Part>()
  const texts: string[] = []
  const view = {
    parts,
    /** Each text that was shown of a part, as `id: text`. */
    texts,
    last: 0,
    apply(event: SessionEvent) {
      if (event.type === "reset") throw new Error("The stream was reset.")
      view.last = event.seq ?? view.last
      if (event.type === "part.updated") parts.set(event.part.id, structuredClone(event.part))
      if (event.type === "part.removed") parts.delete(event.partID)
      const part = event.type === "part.delta" ? parts.get(event.partID) : undefined
      if (event.type === "part.delta" && part) {
        if (part.type === "text" || part.type === "reasoning") part.text += event.delta
        if (part.type === "tool" && part.state.status === "pending") part.state.raw += event.delta
      }
      const id = event.type === "part.updated" ? event.part.id : part?.id
      if (id !== undefined) texts.push(`${id}: ${textOf(parts.get(id))}`)
    },
  }
  return view
}

function textOf(part: Part | undefined): string {
  if (part?.type === "text" || part?.type === "reasoning") return part.text
  return part?.type === "tool" && part.state.status === "pending" ? part.state.raw : ""
}

const turnOfLoop = () => new Promise((resolve) => setImmediate(() => setImmediate(resolve)))

/** Resolves later, so that other work happens in between. */
async function later<T>(value: T, ticks: number): Promise<T> {
  for (let tick = 0; tick < ticks; tick += 1) await new Promise<void>((resolve) => process.nextTick(resolve))
  return value
}

/** A model that streams parts, and readers of its session. `delays` are the delays of a commit and of a read. */
async function openSession(delays: { commit: number; read: number }) {
  const memory = createMemoryStore()
  await memory.commit([
    { kind: "session", session: aSession(sessionID) },
    { kind: "message", message: aMessage("msg_1", sessionID) },
  ])
  const watchers = new Set<() => void>()
  const store: Store = {
    ...memory,
    commit: async (changes, options) => later(await memory.commit(changes, options), delays.commit),
    changes: async (id, after) => later(await memory.changes(id, after), delays.read),
    watch(listener) {
      watchers.add(listener)
      return () => watchers.delete(listener)
    },
  }
  const bus = createBus((error) => {
    throw error
  })
  const recorder = createRecorder({ sessionID, store, bus })
  const open: Part[] = []
  let count = 0

  function pick(index: number): Part | undefined {
    return open.length === 0 ? undefined : open[index % open.length]
  }

  return {
    bus,
    follow(after: number, signal: AbortSignal) {
      return streamSessionEvents({ store, bus, parts: recorder }, sessionID, { after, signal })
    },
    begin(type: "text" | "reasoning" | "tool") {
      count += 1
      const base = { id: `prt_${count}`, sessionID, messageID: "msg_1" }
      const part: Part =
        type === "tool"
          ? { ...base, type, callID: `call_${count}`, tool: "write", state: pending() }
          : { ...base, type, text: "", time: { start: 1 } }
      open.push(part)
      recorder.note({ parts: [structuredClone(part)] })
    },
    grow(index: number) {
      const part = pick(index)
      if (!part) return
      count += 1
      const text = `${count} `
      if (part.type === "tool" && part.state.status === "pending") part.state.raw += text
      if (part.type === "text" || part.type === "reasoning") part.text += text
      recorder.delta(part.id, part.type === "tool" ? "raw" : "text", text)
    },
    end(index: number) {
      const part = pick(index)
      if (!part) return
      open.splice(open.indexOf(part), 1)
      if (part.type === "text" || part.type === "reasoning") part.time = { start: 1, end: 2 }
      if (part.type === "tool" && part.state.status === "pending") part.state = start(part.state, {}, 2)
      void recorder.write({ parts: [structuredClone(part)] })
    },
    remove(index: number) {
      const part = pick(index)
      if (!part) return
      open.splice(open.indexOf(part), 1)
      void recorder.removeParts([part])
    },
    announce: () => void recorder.write({}),
    async foreign() {
      await memory.commit([{ kind: "todos", sessionID, todos: [] }])
      for (const watcher of [...watchers]) watcher()
    },
  }
}

test("a reader that joins at any moment, again and again, has the same text as one that joined at the start", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(action, { minLength: 5, maxLength: 60, size: "max" }),
      fc.record({ commit: fc.nat({ max: 6 }), read: fc.nat({ max: 6 }) }),
      async (actions, delays) => {
        const session = await openSession(delays)
        const there = createView()
        session.bus.subscribe(there.apply)
        const joined = createView()
        let leave = new AbortController()

        /** Ends the stream of the reader, who then continues after the last number that it knows. */
        async function join() {
          leave.abort()
          leave = new AbortController()
          const { signal } = leave
          for await (const event of session.follow(joined.last, signal))
            if (!signal.aborted) joined.apply(event)
        }

        let isJoined = false
        for (const step of actions) {
          if (step.kind === "begin") session.begin(step.type)
          else if (step.kind === "join") void join()
          else if (step.kind === "turn") await turnOfLoop()
          else if (step.kind === "tick") await later(undefined, 1)
          else if ("index" in step) session[step.kind](step.index)
          else await session[step.kind]()
          isJoined ||= step.kind === "join"
          if (!isJoined || !(step.kind === "join" ? step.wait : step.kind === "turn")) continue
          await turnOfLoop()
          expect(Object.fromEntries(joined.parts)).toEqual(Object.fromEntries(there.parts))
        }
        session.announce()
        await turnOfLoop()
        if (isJoined) {
          expect(Object.fromEntries(joined.parts)).toEqual(Object.fromEntries(there.parts))
          expect(joined.texts.filter((text) => !there.texts.includes(text))).toEqual([])
        }
        leave.abort()
      },
    ),
    { numRuns: runs(1_000) },
  )
})
