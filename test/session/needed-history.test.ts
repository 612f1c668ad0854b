import * as fc from "fast-check"
import { expect, test } from "vitest"
import { createFileTracker } from "../../src/files/file-tracker.ts"
import type { MessageWithParts } from "../../src/schema/message.ts"
import type { CompactionPart } from "../../src/schema/part.ts"
import { restoreLedger } from "../../src/session/crash-recovery.ts"
import { dropSummed, neededPages } from "../../src/session/history.ts"
import { createMemoryStore } from "../../src/store/memory.ts"
import type { Change } from "../../src/store/store.ts"
import { aMessage, aSession } from "../suites/records.ts"

const sessionID = "ses_a"
const messageAt = (index: number) => `msg_${String(index).padStart(6, "0")}`

/** Each message reads a file, or is a summary that keeps some messages and may list the files. */
type Entry = { reads: number } | { keeps: number | undefined; knows: boolean }

const entry: fc.Arbitrary<Entry> = fc.oneof(
  { weight: 30, arbitrary: fc.record({ reads: fc.nat({ max: 20 }) }) },
  {
    weight: 1,
    arbitrary: fc.record({ keeps: fc.option(fc.nat({ max: 150 }), { nil: undefined }), knows: fc.boolean() }),
  },
)

/** The resulting session: a summary lists the files read so far. */
function changesOf(entries: readonly Entry[]): Change[] {
  const ledger = createFileTracker()
  /** The model's view starts here: a summary keeps nothing from before. */
  let start = 0
  return entries.flatMap((entry, index): Change[] => {
    const messageID = messageAt(index)
    const base = { id: `prt_${messageID}`, sessionID, messageID }
    if ("reads" in entry) {
      const path = `/w/${entry.reads}`
      const stamp = { size: index, mtimeMs: index }
      ledger.record(path, stamp)
      const state = {
        status: "completed" as const,
        input: {},
        output: "",
        title: "",
        metadata: { file: { path, stamp } },
        time: { start: 1, end: 2 },
      }
      const message = aMessage(messageID, sessionID)
      return [
        { kind: "message", message },
        { kind: "part", part: { ...base, type: "tool", callID: "c", tool: "read", state } },
      ]
    }
    const seen = ledger.entries().map(([path, stamp]) => ({ path, stamp }))
    start = entry.keeps === undefined ? index : Math.max(start, index - entry.keeps)
    const part: CompactionPart = {
      ...base,
      type: "compaction",
      auto: true,
      ...(entry.keeps === undefined ? {} : { from: messageAt(start) }),
      ...(entry.knows ? { seen } : {}),
    }
    const { id, time, agent, model } = aMessage(messageID, sessionID)
    const message = { id, sessionID, role: "user" as const, time: { created: time.created }, agent, model }
    return [
      { kind: "message", message },
      { kind: "part", part },
    ]
  })
}

/** Returns the state from which a session continues. */
async function opened(pages: AsyncIterable<MessageWithParts[]> | Iterable<MessageWithParts[]>) {
  const ledger = createFileTracker()
  const history: MessageWithParts[] = []
  for await (const page of pages) {
    restoreLedger(page, ledger)
    history.push(...page)
    dropSummed(history)
  }
  const files = [...ledger.entries()].sort(([a], [b]) => a.localeCompare(b))
  return { messages: history.map(({ message }) => message.id), files }
}

/** Expects the same state from the needed pages as from the whole history. Returns the expected messages. */
async function expectSame(entries: readonly Entry[]): Promise<string[]> {
  const store = createMemoryStore()
  await store.commit([{ kind: "session", session: aSession(sessionID) }, ...changesOf(entries)])
  const expected = await opened([await store.messages(sessionID)])
  const needed = await opened(neededPages((page) => store.messages(sessionID, page)))
  expect(needed).toEqual(expected)
  return expected.messages
}

test("derives the same history and known files from the needed pages as from all pages", async () => {
  const sessions = fc.array(entry, { maxLength: 400, size: "max" })
  await fc.assert(
    fc.asyncProperty(sessions, async (entries) => void (await expectSame(entries))),
    { numRuns: Number(process.env.TACKLE_TEST_HISTORIES ?? 60), endOnFailure: true },
  )
})

test("keeps the messages before an older summary if the newest summary keeps them", async () => {
  const reads = (count: number) => Array.from({ length: count }, (): Entry => ({ reads: 0 }))
  // The older summary starts at message 80. The pages that are read start at message 101, and the first ends at 200.
  const older: Entry = { keeps: 100, knows: true }
  const newest: Entry = { keeps: 150, knows: true }
  const messages = await expectSame([...reads(180), older, ...reads(119), newest])
  expect(messages).toHaveLength(151)
  expect(messages[0]).toBe(messageAt(150))
})
