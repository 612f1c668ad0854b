import fc from "fast-check"
import { afterEach, beforeEach, describe, expect, test } from "vitest"
import type { Input } from "../../src/schema/input.ts"
import {
  type Lease,
  type LeaseHolder,
  LeaseLostError,
  type Store,
  StoreError,
} from "../../src/store/store.ts"
import { runs } from "../runs.ts"
import { aMessage, aPart, aSession } from "./records.ts"

/** One database as several processes see it. */
export interface LeasePlace {
  /** The stores of three processes. A store in memory is the same for all. */
  stores: readonly [Store, Store, Store]
  /** Lets the holder appear dead until it leases a session again. */
  stop(holder: LeaseHolder): Promise<void>
  /** Lets the holder appear alive. */
  start(holder: LeaseHolder): void
  close(): Promise<void>
}

const holders = ["eng_1", "eng_2", "eng_3"].map((id) => ({ id, pid: process.pid }))
const [one, two, three] = holders as [LeaseHolder, LeaseHolder, LeaseHolder]

/** The behaviour of leases that every implementation of {@link Store} has. */
export function testLeases(name: string, open: () => Promise<LeasePlace>): void {
  describe(`leases of the ${name} store`, () => {
    let place: LeasePlace
    let first: Store
    let second: Store

    beforeEach(async () => {
      place = await open()
      ;[first, second] = place.stores
      await begin("ses_1")
    })
    afterEach(() => place.close())

    const begin = (id: string) =>
      first.commit([
        { kind: "session", session: aSession(id) },
        { kind: "message", message: aMessage(`msg_${id}`, id) },
        { kind: "part", part: aPart(`prt_${id}`, `msg_${id}`, id, "open") },
      ])
    const textsOf = async (store: Store, id: string) =>
      (await store.messages(id)).flatMap(({ parts }) =>
        parts.map((part) => (part.type === "text" ? part.text : "")),
      )

    async function take(store: Store, holder: LeaseHolder, id = "ses_1"): Promise<Lease> {
      place.start(holder)
      const taken = await store.lease(id, holder)
      if (!taken.isHeld) throw new Error(`${id} is leased to ${taken.holder.id}`)
      return taken.lease
    }

    test("limits the sessions of a tenant that are leased at once", async () => {
      const limit = { tenant: "acme", sessions: 2 }
      const [, , third] = place.stores
      const create = (id: string, tenant: string | undefined, parentID?: string) =>
        first.commit([{ kind: "session", session: { ...aSession(id), tenant, parentID } }])
      for (const id of ["ses_a", "ses_b", "ses_c"]) await create(id, "acme")
      await create("ses_child", "acme", "ses_a")
      await create("ses_other", "other")
      for (const holder of holders) place.start(holder)
      const lease = (store: Store, id: string, holder: LeaseHolder) => store.lease(id, holder, limit)
      // All at the same moment: two get a lease.
      const results = await Promise.allSettled([
        lease(first, "ses_a", one),
        lease(second, "ses_b", two),
        lease(third, "ses_c", three),
      ])
      expect(results.filter(({ status }) => status === "fulfilled")).toHaveLength(2)
      const refused = results.findIndex(({ status }) => status === "rejected")
      expect(results[refused]).toMatchObject({ reason: { code: "tenant.sessions", retryAfterSeconds: 5 } })
      // Sessions of subagents and of other tenants do not count.
      expect(await first.lease("ses_child", one)).toMatchObject({ isHeld: true })
      expect(await first.lease("ses_other", one)).toMatchObject({ isHeld: true })
      expect((await second.tenantUsage("acme", 0)).running).toBe(2)
      // A session does not count against itself, and a holder that is not alive does not count.
      const [id = "", holder = one] = refused === 0 ? ["ses_b", two] : ["ses_a", one]
      expect(await lease(first, id, holder)).toMatchObject({ isHeld: true })
      await place.stop(holder)
      const [waiting = "", next = one] = [
        ["ses_a", one],
        ["ses_b", two],
        ["ses_c", three],
      ][refused] as [string, LeaseHolder]
      expect(await lease(second, waiting, next)).toMatchObject({ isHeld: true })
    })

    test("leases a session to one holder until it releases it", async () => {
      expect(await first.holder("ses_1")).toBeUndefined()
      const lease = await take(first, one)
      expect(lease).toMatchObject({ sessionID: "ses_1", holder: one })
      expect(await second.lease("ses_1", two)).toEqual({ isHeld: false, holder: one })
      expect(await second.holder("ses_1")).toEqual(one)
      await first.release(lease)
      expect(await second.holder("ses_1")).toBeUndefined()
      await take(second, two)
      expect(await first.lease("ses_1", one)).toEqual({ isHeld: false, holder: two })
    })

    test("leases a session to one of several holders that ask at the same time", async () => {
      for (const id of ["ses_2", "ses_3", "ses_4", "ses_5"]) {
        await begin(id)
        const all = await Promise.all(
          place.stores.map((store, index) => store.lease(id, holders[index] ?? one)),
        )
        expect(all.filter(({ isHeld }) => isHeld)).toHaveLength(1)
      }
    })

    test("rejects every write of a holder whose session another one has taken over", async () => {
      const stale = await take(first, one)
      await place.stop(one)
      expect(await second.holder("ses_1")).toBeUndefined()
      const lease = await take(second, two)
      const write = (text: string) =>
        [{ kind: "part", part: aPart("prt_ses_1", "msg_ses_1", "ses_1", text) }] as const
      await expect(first.commit(write("stale"), { lease: stale })).rejects.toThrow(LeaseLostError)
      const claim = first.updateInputs("ses_1", undefined, () => [anInput], { lease: stale })
      await expect(claim).rejects.toThrow(LeaseLostError)
      await first.release(stale)
      expect(await first.holder("ses_1")).toEqual(two)
      await second.commit(write("current"), { lease })
      await second.updateInputs("ses_1", undefined, () => [anInput], { lease })
      await second.release(lease)
      // Also when the session has no holder.
      await expect(first.commit(write("stale"), { lease: stale })).rejects.toMatchObject({
        code: "store.lease",
      })
      expect(await textsOf(first, "ses_1")).toEqual(["current"])
      expect(await first.inputs("ses_1")).toHaveLength(1)
    })

    test("ends a lease in the transaction of its last changes, or stores neither", async () => {
      const lease = await take(first, one)
      const last = { kind: "part", part: aPart("prt_ses_1", "msg_ses_1", "ses_1", "last") } as const
      const rung: unknown[] = []
      const unwatch = first.watchControl((change) => change && rung.push(change))
      await first.commit([last], { lease, releases: true })
      expect(rung).toContainEqual({ sessionID: "ses_1", what: "lease" })
      unwatch()
      expect(await textsOf(second, "ses_1")).toEqual(["last"])
      expect(await second.holder("ses_1")).toBeUndefined()

      const old = await take(first, one)
      await take(first, one)
      const late = { kind: "part", part: aPart("prt_ses_1", "msg_ses_1", "ses_1", "late") } as const
      await expect(first.commit([late], { lease: old, releases: true })).rejects.toThrow(LeaseLostError)
      expect(await textsOf(second, "ses_1")).toEqual(["last"])
      expect((await second.holder("ses_1"))?.id).toBe(one.id)
    })

    test("fails only the stale one of several writes at the same time", async () => {
      const stale = await take(first, one)
      await place.stop(one)
      await take(second, two)
      const write = (id: string, lease?: Lease) =>
        first.commit([{ kind: "session", session: aSession(id) }], { lease })
      const results = await Promise.allSettled([write("ses_2"), write("ses_1", stale), write("ses_3")])
      expect(results.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"])
      expect((await first.sessions()).map(({ id }) => id).sort()).toEqual(["ses_1", "ses_2", "ses_3"])
    })

    test("settles and releases the sessions of stopped holders and keeps other leases", async () => {
      await begin("ses_2")
      await begin("ses_3")
      await take(first, one, "ses_1")
      await take(first, two, "ses_2")
      await place.stop(two)

      const refused = second.recover(() => [{ kind: "part", part: aPart("prt_x", "msg_none", "ses_2") }])
      await expect(refused).rejects.toThrow(StoreError)

      const seen: string[] = []
      const settle = (history: Awaited<ReturnType<Store["messages"]>>) => {
        seen.push(...history.map(({ message }) => message.id))
        return [{ kind: "part", part: aPart("prt_ses_2", "msg_ses_2", "ses_2", "settled") } as const]
      }
      await second.recover(settle)
      await second.recover(settle)
      expect(seen).toEqual(["msg_ses_2"])
      expect(await textsOf(first, "ses_2")).toEqual(["settled"])
      expect(await textsOf(first, "ses_1")).toEqual(["open"])
      expect(await second.holder("ses_1")).toEqual(one)
      await take(second, three, "ses_2")
    })

    test("returns the sessions with an unfinished undo until their leases are taken", async () => {
      const restoring = { direction: "undo" as const, messages: ["msg_1"] }
      const session = { ...aSession("ses_1"), restoring }
      await first.commit([{ kind: "session", session }])
      await take(first, one)
      await place.stop(one)
      expect(await second.recover(() => [])).toEqual([session])
      expect(await second.recover(() => [])).toEqual([session])
      await second.release(await take(second, two))
      expect(await second.recover(() => [])).toEqual([])
    })

    test("ends a lease with its session, and rejects one without a session", async () => {
      const lease = await take(first, one)
      await second.deleteSession("ses_1")
      expect(await first.holder("ses_1")).toBeUndefined()
      await expect(first.lease("ses_1", one)).rejects.toThrow(StoreError)
      await first.release(lease)
      // The lease of a deleted session does not apply to a new session with the same id.
      await begin("ses_1")
      const stale = first.commit([{ kind: "session", session: aSession("ses_1") }], { lease })
      await expect(stale).rejects.toThrow(LeaseLostError)
    })

    test("has one writer in any order of leases, writes, releases and stops", async () => {
      const step = fc.record({
        kind: fc.constantFrom("lease", "write", "release", "stop", "all write"),
        by: fc.integer({ min: 0, max: 2 }),
      })
      let run = 0
      await fc.assert(
        fc.asyncProperty(fc.array(step, { maxLength: 15 }), async (steps) => {
          run += 1
          const id = `ses_run${run}`
          await begin(id)
          const leases: (Lease | undefined)[] = []
          /** The holder that may write, and whether another may take over. */
          let current: { by: number; alive: boolean } | undefined
          let count = 0
          let expected = ["open"]

          const write = async (by: number): Promise<boolean> => {
            const lease = leases[by]
            if (!lease) return false
            count += 1
            const text = `${by}-${count}`
            const part = aPart(`prt_${id}`, `msg_${id}`, id, text)
            return place.stores[by as 0].commit([{ kind: "part", part }], { lease }).then(
              () => {
                expected = [text]
                return true
              },
              (error: unknown) => {
                expect(error).toBeInstanceOf(LeaseLostError)
                return false
              },
            )
          }

          for (const { kind, by } of steps) {
            const [store, holder] = [place.stores[by as 0], holders[by] as LeaseHolder]
            if (kind === "lease") {
              if (current?.by !== by) place.start(holder)
              const taken = await store.lease(id, holder)
              const isFree = !current || current.by === by || !current.alive
              expect(taken.isHeld).toBe(isFree)
              if (!taken.isHeld) continue
              place.start(holder)
              leases[by] = taken.lease
              current = { by, alive: true }
            } else if (kind === "write") {
              expect(await write(by)).toBe(current?.by === by)
            } else if (kind === "all write") {
              const done = await Promise.all([0, 1, 2].map(write))
              expect(done).toEqual([0, 1, 2].map((each) => current?.by === each))
            } else if (kind === "release") {
              const lease = leases[by]
              if (lease) await store.release(lease)
              if (lease && current?.by === by) current = undefined
            } else if (current?.by === by) {
              await place.stop(holder)
              current.alive = false
            }
          }
          expect(await textsOf(first, id)).toEqual(expected)
          for (const lease of leases) if (lease) await first.release(lease)
          for (const holder of holders) place.start(holder)
        }),
        { numRuns: runs(60) },
      )
    })
  })
}

const anInput: Input = {
  ...{ id: "inp_1", sessionID: "ses_1", seq: 0, position: 1, time: { created: 1 } },
  ...{ text: "text", digest: "text", delivery: "queue", state: "pending" },
}
