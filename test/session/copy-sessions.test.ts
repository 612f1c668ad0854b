import { expect, test } from "vitest"
import type { Input } from "../../src/schema/input.ts"
import { copySessions } from "../../src/session/copy-sessions.ts"
import { createMemoryStore } from "../../src/store/memory.ts"
import type { Store } from "../../src/store/store.ts"
import { identifyProcess } from "../../src/util/process-table.ts"
import { aMessage, aPart, aSession } from "../suites/records.ts"

const holder = { id: "eng_copy", ...identifyProcess() }

/** A store with a long session, whose parts need several transactions, and a short one. */
async function source(): Promise<Store> {
  const store = createMemoryStore()
  const input: Input = {
    ...{ id: "inp_1", sessionID: "ses_1", seq: 1, position: 1, time: { created: 1 } },
    ...{ text: "sent", digest: "sent", delivery: "queue", state: "promoted" },
  }
  await store.commit([
    { kind: "session", session: aSession("ses_1", { time: { created: 1, updated: 5 } }) },
    { kind: "session", session: aSession("ses_2", { parentID: "ses_1" }) },
    { kind: "message", message: aMessage("msg_1", "ses_1") },
    { kind: "todos", sessionID: "ses_1", todos: [{ content: "t", status: "pending", priority: "low" }] },
    { kind: "input", input },
    { kind: "input", input: { ...input, id: "inp_2", state: "pending" } },
    {
      kind: "grant",
      grant: {
        ...{ id: "gra_1", scope: "session", sessionID: "ses_1", worktree: "/w", time: { created: 1 } },
        ...{ permission: "bash", pattern: "ls", action: "allow" },
      },
    },
  ])
  for (let index = 0; index < 450; index += 1)
    await store.commit([{ kind: "part", part: aPart(`prt_${index}`, "msg_1", "ses_1") }])
  return store
}

async function outcomes(from: Store, to: Store): Promise<Record<string, string>> {
  const found: Record<string, string> = {}
  for await (const { session, outcome } of copySessions({ from, to }, holder)) found[session.id] = outcome
  return found
}

const objects = async (store: Store, id: string) =>
  (await store.changes(id, 0)).map(({ change }) => JSON.stringify(change)).sort()

test("copies sessions completely, and nothing the second time", async () => {
  const [from, to] = [await source(), createMemoryStore()]
  expect(await outcomes(from, to)).toEqual({ ses_1: "copied", ses_2: "copied" })
  for (const id of ["ses_1", "ses_2"]) expect(await objects(to, id)).toEqual(await objects(from, id))
  expect(await to.grants({ sessionID: "ses_1" })).toHaveLength(1)
  const sequence = await to.sequence("ses_1")
  expect(await outcomes(from, to)).toEqual({ ses_1: "unchanged", ses_2: "unchanged" })
  expect(await to.sequence("ses_1")).toBe(sequence)
})

test("completes an interrupted copy, and copies later changes", async () => {
  const [from, to] = [await source(), createMemoryStore()]
  let commits = 0
  const failing: Store = {
    ...to,
    async commit(changes, options) {
      commits += 1
      if (commits === 4) throw new Error("interrupted")
      return to.commit(changes, options)
    },
  }
  expect(await outcomes(from, failing)).toMatchObject({ ses_1: "failed" })
  expect((await to.messages("ses_1"))[0]?.parts.length ?? 0).toBeLessThan(450)
  expect(await outcomes(from, to)).toMatchObject({ ses_1: "copied" })
  await from.commit([
    { kind: "part.remove", sessionID: "ses_1", messageID: "msg_1", partID: "prt_7" },
    { kind: "part", part: aPart("prt_8", "msg_1", "ses_1", "later") },
  ])
  expect(await outcomes(from, to)).toMatchObject({ ses_1: "copied" })
  expect(await to.messages("ses_1")).toEqual(await from.messages("ses_1"))
})

test("keeps a session that was continued in the target, and leaves sessions in use", async () => {
  const [from, to] = [await source(), createMemoryStore()]
  await outcomes(from, to)
  const newer = aSession("ses_1", { title: "continued", time: { created: 1, updated: 9 } })
  await to.commit([{ kind: "session", session: newer }])
  await from.lease("ses_2", { id: "eng_other", ...identifyProcess() })
  expect(await outcomes(from, to)).toEqual({ ses_1: "newer", ses_2: "held" })
  expect((await to.session("ses_1"))?.title).toBe("continued")
})

test("reports a target that stores something else", async () => {
  const [from, to] = [await source(), createMemoryStore()]
  const losing: Store = {
    ...to,
    commit: (changes, options) =>
      to.commit(
        changes.filter((change) => change.kind !== "part" || change.part.id !== "prt_9"),
        options,
      ),
  }
  expect(await outcomes(from, losing)).toMatchObject({ ses_1: "failed", ses_2: "copied" })
})
