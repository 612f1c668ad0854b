import { AsyncLocalStorage } from "node:async_hooks"
import { expect, test } from "vitest"
import { createBus } from "../../src/event/bus.ts"
import type { TextPart } from "../../src/schema/part.ts"
import { createRecorder } from "../../src/session/recorder.ts"
import { createMemoryStore } from "../../src/store/memory.ts"
import { type Change, type CommitOptions, type Lease, StoreError } from "../../src/store/store.ts"

const sessionID = "ses_1"
const part = (id: string, text = ""): TextPart => ({ id, sessionID, messageID: "msg_1", type: "text", text })

/** A recorder, the ids of each transaction, and its events. */
function record(refuse: (changes: readonly Change[]) => boolean = () => false, lease?: Lease) {
  const memory = createMemoryStore()
  const transactions: string[][] = []
  const announced: string[] = []
  const bus = createBus(() => {})
  bus.subscribe((event) => {
    if (event.type === "part.updated") announced.push(event.part.id)
    if (event.type === "part.delta") announced.push(`${event.partID}+${event.delta}`)
  })
  const store = {
    ...memory,
    async commit(changes: readonly Change[]) {
      if (refuse(changes)) throw new StoreError("The disk is full.")
      transactions.push(changes.map((change) => (change.kind === "part" ? change.part.id : change.kind)))
      return changes.map((_, index) => index + 1)
    },
  }
  return { recorder: createRecorder({ sessionID, store, bus, lease: () => lease }), transactions, announced }
}

const turnOfLoop = () => new Promise((resolve) => setImmediate(() => setImmediate(resolve)))

test("stores notes with the next write, in order with deltas", async () => {
  const { recorder, transactions, announced } = record()
  recorder.note({ parts: [part("a")] })
  recorder.delta("a", "text", "x")
  recorder.note({ parts: [part("b")] })
  expect(transactions).toEqual([])
  await recorder.write({ parts: [part("c")] })
  expect(transactions).toEqual([["a", "b", "c"]])
  expect(announced).toEqual(["a", "a+x", "b", "c"])
})

test("stores notes within the turn of the event loop if nothing follows", async () => {
  const { recorder, transactions, announced } = record()
  recorder.note({ parts: [part("a")] })
  recorder.note({ parts: [part("b")] })
  await turnOfLoop()
  expect(transactions).toEqual([["a", "b"]])
  expect(announced).toEqual(["a", "b"])
})

test("announces nothing and refuses the next write when a note could not be stored", async () => {
  const { recorder, transactions, announced } = record((changes) =>
    changes.some((change) => change.kind === "part" && change.part.id === "a"),
  )
  recorder.note({ parts: [part("a")] })
  await turnOfLoop()
  await expect(recorder.write({ parts: [part("b")] })).rejects.toThrow("The disk is full.")
  await recorder.write({ parts: [part("c")] })
  expect(transactions).toEqual([["c"]])
  expect(announced).toEqual(["c"])
})

test("announces streamed text even if nothing else happens", async () => {
  const { recorder, announced } = record()
  recorder.delta("a", "text", "x")
  recorder.delta("a", "text", "y")
  await expect.poll(() => announced).toEqual(["a+xy"])
  recorder.delta("a", "text", "z")
  await expect.poll(() => announced).toEqual(["a+xy", "a+z"])
})

test("keeps streamed text while the lease may have expired, until it is renewed or the part is complete", async () => {
  let isCurrent = true
  const holder = { id: "eng_1", pid: 1, host: "a" }
  const lease: Lease = { sessionID, holder, epoch: 1, isCurrent: () => isCurrent }
  const { recorder, announced } = record(() => false, lease)
  const streamed = async (id: string, text: string) => {
    recorder.delta(id, "text", text)
    await recorder.write({})
  }
  await streamed("a", "1")
  isCurrent = false
  await streamed("a", "2")
  await streamed("b", "1")
  expect(announced).toEqual(["a+1"])
  await recorder.write({ parts: [part("b", "1")] })
  isCurrent = true
  await streamed("a", "3")
  expect(announced).toEqual(["a+1", "b", "a+2", "a+3"])
  isCurrent = false
  await streamed("a", "4")
  recorder.stopStreaming()
  isCurrent = true
  await streamed("c", "1")
  expect(announced).toEqual(["a+1", "b", "a+2", "a+3", "c+1"])
})

test("commits parallel writes in one transaction", async () => {
  const { recorder, transactions, announced } = record()
  const call = async (id: string) => {
    await Promise.resolve()
    await recorder.write({ parts: [part(id)] })
    expect(transactions.flat()).toContain(id)
    expect(announced).toContain(id)
  }
  await Promise.all([call("a"), call("b"), call("c")])
  expect(transactions).toEqual([["a", "b", "c"]])
})

test("refuses all parallel writes when the store refuses, but not the next one", async () => {
  const { recorder, transactions, announced } = record((changes) =>
    changes.some((change) => change.kind === "part" && change.part.id === "b"),
  )
  const writes = ["a", "b", "c"].map((id) => recorder.write({ parts: [part(id)] }))
  for (const result of await Promise.allSettled(writes)) expect(result.status).toBe("rejected")
  expect(announced).toEqual([])
  await recorder.write({ parts: [part("d")] })
  expect(transactions).toEqual([["d"]])
})

test("stores only the last state of a part in a transaction, and announces each", async () => {
  const stored: string[] = []
  const texts: string[] = []
  const bus = createBus(() => {})
  bus.on("part.updated", ({ part }) => texts.push(part.type === "text" ? part.text : ""))
  const store = {
    ...createMemoryStore(),
    async commit(changes: readonly Change[]) {
      for (const change of changes)
        if (change.kind === "part" && change.part.type === "text") stored.push(change.part.text)
      return [1, 2]
    },
  }
  const recorder = createRecorder({ sessionID, store, bus })
  recorder.note({ parts: [part("a", "first")] })
  recorder.note({ parts: [part("b", "other")] })
  await recorder.write({ parts: [part("a", "last")] })
  expect(stored).toEqual(["other", "last"])
  expect(texts).toEqual(["first", "other", "last"])
})

test("announces each stored change with its sequence number", async () => {
  const announced: [string, number | undefined][] = []
  const bus = createBus(() => {})
  bus.subscribe((event) => {
    if (event.type === "part.updated" && event.part.type === "text")
      announced.push([event.part.text, event.seq])
  })
  const store = { ...createMemoryStore(), commit: async () => [7, 8] }
  const recorder = createRecorder({ sessionID, store, bus })
  recorder.note({ parts: [part("a", "replaced in its transaction")] })
  recorder.note({ parts: [part("b", "other")] })
  await recorder.write({ parts: [part("a", "last")] })
  expect(announced).toEqual([
    ["replaced in its transaction", undefined],
    ["other", 7],
    ["last", 8],
  ])
})

test("syncs a transaction to disk if any write in it requires it", async () => {
  const durable: (boolean | undefined)[] = []
  const store = {
    ...createMemoryStore(),
    async commit(_: readonly Change[], options: CommitOptions = {}) {
      durable.push(options.durable)
      return []
    },
  }
  const recorder = createRecorder({ sessionID, store, bus: createBus(() => {}) })
  await Promise.all([
    recorder.write({ parts: [part("a")] }),
    recorder.write({ parts: [part("b")], durable: true }),
  ])
  await recorder.write({ parts: [part("c")] })
  expect(durable).toEqual([true, false])
})

test("calls listeners outside of any call's async context", async () => {
  const context = new AsyncLocalStorage<string>()
  const heard: (string | undefined)[] = []
  const bus = createBus(() => {})
  bus.subscribe(() => heard.push(context.getStore()))
  const store = { ...createMemoryStore(), commit: async () => [] }
  // A subagent's recorder is created inside the call that started it.
  const recorder = context.run("parent", () => createRecorder({ sessionID, store, bus }))
  await Promise.all(["one", "two"].map((id) => context.run(id, () => recorder.write({ parts: [part(id)] }))))
  await context.run("three", async () => {
    recorder.note({ parts: [part("three")] })
    await turnOfLoop()
  })
  expect(heard).toEqual([undefined, undefined, undefined])
})
