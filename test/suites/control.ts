import { afterEach, beforeEach, describe, expect, test } from "vitest"
import type { RequestAnswer, StoredRequest } from "../../src/schema/request.ts"
import { type Lease, type LeaseHolder, LeaseLostError, type Store } from "../../src/store/store.ts"
import type { LeasePlace } from "./leases.ts"
import { aSession } from "./records.ts"

const [one, two] = ["eng_1", "eng_2"].map((id) => ({ id, pid: process.pid })) as [LeaseHolder, LeaseHolder]

/** The behaviour of stops and requests that every implementation of {@link Store} has. */
export function testControl(name: string, open: () => Promise<LeasePlace>): void {
  describe(`control of sessions in the ${name} store`, () => {
    let place: LeasePlace
    let first: Store
    let second: Store

    beforeEach(async () => {
      place = await open()
      ;[first, second] = place.stores
      for (const id of ["ses_1", "ses_2"]) await first.commit([{ kind: "session", session: aSession(id) }])
    })
    afterEach(() => place.close())

    async function take(store: Store, holder: LeaseHolder, id = "ses_1"): Promise<Lease> {
      place.start(holder)
      const taken = await store.lease(id, holder)
      if (!taken.isHeld) throw new Error(`${id} is leased to ${taken.holder.id}`)
      return taken.lease
    }

    const answerOf = (id: string): RequestAnswer => ({
      ...{ type: "permission", id, reply: { reply: "once" }, source: "user" },
    })
    const idsOf = async (store: Store) => (await store.requests()).map(({ asked }) => asked.id)

    /** Resolves when the listeners of a store are called. */
    const nextRing = (store: Store) =>
      new Promise<void>((resolve) => {
        const end = store.watchControl(() => {
          end()
          resolve()
        })
      })

    describe("a stop", () => {
      test("reaches the holder of the present lease, and no later lease", async () => {
        expect(await second.stop("ses_1")).toBeUndefined()
        const lease = await take(first, one)
        expect(await first.isStopping(lease)).toBe(false)
        const rung = nextRing(first)
        expect(await second.stop("ses_1")).toMatchObject({
          ...{ sessionID: "ses_1", holder: one, epoch: lease.epoch },
        })
        await rung
        expect(await first.isStopping(lease)).toBe(true)
        expect(await second.isStopping(lease)).toBe(true)
        expect(await second.holder("ses_1")).toEqual(one)

        await first.release(lease)
        expect(await second.isStopping(lease)).toBe(false)
        const later = await take(first, one)
        expect(await first.isStopping(later)).toBe(false)
        await second.stop("ses_1")
        const again = await take(first, one)
        expect(await first.isStopping(later)).toBe(false)
        expect(await first.isStopping(again)).toBe(false)
      })

      test("of a holder that is not alive does nothing", async () => {
        const lease = await take(first, one)
        await place.stop(one)
        expect(await second.stop("ses_1")).toBeUndefined()
        const next = await take(second, two)
        expect(await second.isStopping(next)).toBe(false)
        expect(await first.isStopping(lease)).toBe(false)
      })

      test("ends the wait for a release in another process", async () => {
        const lease = await take(first, one)
        const rung = nextRing(second)
        await first.release(lease)
        await rung
        expect(await second.holder("ses_1")).toBeUndefined()
      })
    })

    describe("a request", () => {
      test("is seen by every process until it is answered", async () => {
        const lease = await take(first, one)
        const rung = nextRing(second)
        const request = aRequest("per_1", lease)
        await first.openRequest(request, lease)
        await rung
        expect(await second.requests()).toEqual([request])
        expect(await second.request("per_1")).toEqual(request)
        expect(await second.request("per_2")).toBeUndefined()

        const answered = nextRing(first)
        expect(await second.answerRequest("per_1", answerOf("ans_1"))).toMatchObject({
          answer: answerOf("ans_1"),
        })
        await answered
        expect(await idsOf(first)).toEqual([])
        const stored = await first.request("per_1")
        expect(stored?.answer).toEqual(answerOf("ans_1"))
        // The details were only for the reader of the question.
        expect(JSON.stringify(stored)).not.toContain("a long diff")
      })

      test("keeps its first answer", async () => {
        const lease = await take(first, one)
        await first.openRequest(aRequest("per_1", lease), lease)
        const answers = await Promise.all(
          place.stores.map((store, index) => store.answerRequest("per_1", answerOf(`ans_${index}`))),
        )
        const ids = answers.map((request) => request?.answer?.id)
        expect(new Set(ids).size).toBe(1)
        expect(await second.answerRequest("per_1", answerOf("ans_late"))).toMatchObject({
          answer: { id: ids[0] },
        })
        expect(await second.answerRequest("per_none", answerOf("ans_1"))).toBeUndefined()
      })

      test("are listed oldest first, of every kind", async () => {
        const lease = await take(first, one)
        const other = await take(first, one, "ses_2")
        await first.openRequest(aRequest("per_2", lease), lease)
        await first.openRequest(aQuestion("que_1", other), other)
        await first.openRequest(aRequest("per_3", lease), lease)
        expect(await idsOf(second)).toEqual(["que_1", "per_2", "per_3"])
      })

      test("ends with the lease under which it was stored", async () => {
        const lease = await take(first, one)
        await first.openRequest(aRequest("per_1", lease), lease)
        await first.release(lease)
        expect(await idsOf(second)).toEqual([])
        expect(await second.answerRequest("per_1", answerOf("ans_1"))).toBeUndefined()
        await take(first, one)
        expect(await idsOf(second)).toEqual([])
        await expect(first.openRequest(aRequest("per_2", lease), lease)).rejects.toThrow(LeaseLostError)
        await second.recover(() => [])
        expect(await second.request("per_1")).toBeUndefined()
      })

      test("ends with its holder, and is removed by the recovery", async () => {
        const [lease, other] = [await take(first, one), await take(first, two, "ses_2")]
        await first.openRequest(aRequest("per_1", lease), lease)
        await first.openRequest(aQuestion("que_2", other), other)
        await place.stop(one)
        expect(await idsOf(second)).toEqual(["que_2"])
        expect(await second.answerRequest("per_1", answerOf("ans_1"))).toBeUndefined()
        await second.recover(() => [])
        expect(await first.request("per_1")).toBeUndefined()
        expect(await idsOf(first)).toEqual(["que_2"])
      })

      test("is deleted with its session", async () => {
        const lease = await take(first, one)
        await first.openRequest(aRequest("per_1", lease), lease)
        await second.deleteSession("ses_1")
        expect(await first.request("per_1")).toBeUndefined()
        expect(await idsOf(first)).toEqual([])
      })
    })
  })
}

function aRequest(id: string, { sessionID, holder, epoch }: Lease): StoredRequest {
  return {
    asked: {
      ...{ type: "permission", id, sessionID, permission: "edit", patterns: ["a.txt"], always: ["*"] },
      ...{ rules: [], metadata: { diff: "a long diff" } },
    },
    holder: holder.id,
    epoch,
    time: { created: 1 },
  }
}

function aQuestion(id: string, { sessionID, holder, epoch }: Lease): StoredRequest {
  return {
    asked: { type: "question", id, sessionID, questions: [{ question: "Which one?" }] },
    holder: holder.id,
    epoch,
    time: { created: 1 },
  }
}
