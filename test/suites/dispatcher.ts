import { afterEach, beforeEach, describe, expect, test } from "vitest"
import type { Again, Dispatcher, Job } from "../../src/scale/dispatcher.ts"

/** A queue for one test. */
export interface DispatcherPlace {
  /** Opens a dispatcher of the queue. Dispatchers of one process may be the same. */
  open(): Promise<Dispatcher>
  /**
   * Starts a process that takes one job and keeps it, and returns a function that kills it. Absent if the queue is not
   * shared between processes.
   */
  takeInProcess?(): Promise<{ taken: Promise<string>; kill(): Promise<void> }>
  /** Problems that were reported. */
  problems: string[]
  close(): Promise<void>
}

/** The behaviour that every implementation of {@link Dispatcher} has. */
export function testDispatcher(name: string, place: () => Promise<DispatcherPlace>): void {
  describe(`${name} dispatcher`, () => {
    let queue: DispatcherPlace
    let first: Dispatcher
    let second: Dispatcher

    beforeEach(async () => {
      queue = await place()
      first = await queue.open()
      second = await queue.open()
    })
    afterEach(() => queue.close())

    /** Takes jobs with both dispatchers. Each job waits until the test ends it. */
    function worker({ concurrency = 10 } = {}) {
      const jobs: (Job & { end(again?: Again): void; fail(error: Error): void })[] = []
      const handle = (job: Job) => {
        const { promise, resolve, reject } = Promise.withResolvers<Again | undefined>()
        jobs.push({ ...job, end: resolve, fail: reject })
        return promise
      }
      const names = () => jobs.map(({ key, reason }) => `${key} ${reason}`)
      return { jobs, names, work: (dispatcher: Dispatcher) => dispatcher.work({ concurrency, handle }) }
    }
    const workBoth = async (options?: { concurrency?: number }) => {
      const both = worker(options)
      await both.work(first)
      if (second !== first) await both.work(second)
      return both
    }
    /** Long enough for a job to be taken by mistake. */
    const pause = () => new Promise((resolve) => setTimeout(resolve, 300))

    test("works on the jobs of a key in order, one at a time", async () => {
      const { jobs, names } = await workBoth()
      for (const id of ["1", "2", "3"])
        await first.enqueue({ key: "a", id, reason: id === "2" ? "continue" : "input" })
      await expect.poll(names).toEqual(["a input"])
      await pause()
      expect(names()).toEqual(["a input"])
      jobs[0]?.end()
      await expect.poll(names).toEqual(["a input", "a continue"])
      await pause()
      expect(names()).toHaveLength(2)
      jobs[1]?.end()
      await expect.poll(names).toEqual(["a input", "a continue", "a input"])
      jobs[2]?.end()
    })

    test("works on several keys at once, but on no more jobs than allowed", async () => {
      const one = worker({ concurrency: 2 })
      await one.work(first)
      for (const key of ["a", "b", "c", "d"]) await first.enqueue({ key, id: "1", reason: "input" })
      await expect.poll(one.names).toEqual(["a input", "b input"])
      await pause()
      expect(one.names()).toHaveLength(2)
      one.jobs[1]?.end()
      await expect.poll(one.names).toEqual(["a input", "b input", "c input"])
      for (const { end } of one.jobs) end()
      await expect.poll(one.names).toHaveLength(4)
      one.jobs[3]?.end()
    })

    test("takes jobs that were enqueued before", async () => {
      await first.enqueue({ key: "a", id: "1", reason: "input" })
      expect(await first.stats()).toEqual({ waiting: 1, active: 0 })
      const { jobs, names } = await workBoth()
      await expect.poll(names).toEqual(["a input"])
      expect(await second.stats()).toEqual({ waiting: 0, active: 1 })
      jobs[0]?.end()
      await expect.poll(() => first.stats()).toEqual({ waiting: 0, active: 0 })
    })

    test("does not repeat a job that is enqueued again, before and after it has ended", async () => {
      const { jobs, names } = await workBoth()
      const again = () => first.enqueue({ key: "a", id: "1", reason: "input" })
      await again()
      await again()
      await expect.poll(names).toEqual(["a input"])
      await again()
      jobs[0]?.end()
      await expect.poll(() => first.stats()).toEqual({ waiting: 0, active: 0 })
      await again()
      // The id belongs to its key.
      await first.enqueue({ key: "b", id: "1", reason: "input" })
      await expect.poll(names).toEqual(["a input", "b input"])
      jobs[1]?.end()
    })

    test("puts a job back that its handler returns", async () => {
      const { jobs, names } = await workBoth()
      await first.enqueue({ key: "a", id: "1", reason: "input" })
      await expect.poll(names).toEqual(["a input"])
      await first.enqueue({ key: "a", id: "2", reason: "input" })
      jobs[0]?.end({ reason: "continue", afterMs: 100 })
      await expect.poll(names).toEqual(["a input", "a input"])
      jobs[1]?.end()
      await expect.poll(names).toEqual(["a input", "a input", "a continue"])
      jobs[2]?.end()
    })

    test("reports a failed handler, and continues with the key", async () => {
      const { jobs, names } = await workBoth()
      await first.enqueue({ key: "a", id: "1", reason: "input" })
      await expect.poll(names).toHaveLength(1)
      await first.enqueue({ key: "a", id: "2", reason: "continue" })
      jobs[0]?.fail(new Error("broken"))
      await expect.poll(names).toEqual(["a input", "a continue"])
      jobs[1]?.end()
      expect(queue.problems).toEqual([expect.stringMatching(/the job for .*a failed: broken/)])
    })

    test("gives a cancelled key to another worker while the first handler continues", async () => {
      const { jobs, names } = await workBoth()
      await first.enqueue({ key: "a", id: "1", reason: "input" })
      await expect.poll(names).toHaveLength(1)
      await first.enqueue({ key: "a", id: "2", reason: "input" })
      await second.cancel("a")
      expect(await first.stats()).toEqual({ waiting: 0, active: 0 })
      await second.enqueue({ key: "a", id: "3", reason: "continue" })
      await expect.poll(names).toEqual(["a input", "a continue"])
      jobs[0]?.end()
      await pause()
      expect(await first.stats()).toEqual({ waiting: 0, active: 1 })
      jobs[1]?.end()
    })

    test("replaces the jobs of a key once, however often and wherever the replacement is enqueued", async () => {
      const { jobs, names } = await workBoth()
      await first.enqueue({ key: "a", id: "1", reason: "input" })
      await expect.poll(names).toHaveLength(1)
      await first.enqueue({ key: "a", id: "2", reason: "input" })
      const replacement = { key: "a", id: "3", reason: "continue", replaces: true } as const
      await Promise.all([1, 2, 3, 4].map((each) => (each % 2 ? first : second).enqueue(replacement)))
      await expect.poll(names).toEqual(["a input", "a continue"])
      await second.enqueue(replacement)
      await first.enqueue({ key: "a", id: "4", reason: "input" })
      jobs[0]?.end()
      await pause()
      expect(names()).toEqual(["a input", "a continue"])
      jobs[1]?.end()
      await expect.poll(names).toEqual(["a input", "a continue", "a input"])
      jobs[2]?.end()
    })

    test("waits for its jobs when it closes, then stops them, and takes no more", async () => {
      const { jobs, names, work } = worker({ concurrency: 1 })
      await work(first)
      await first.enqueue({ key: "a", id: "1", reason: "input" })
      await first.enqueue({ key: "b", id: "1", reason: "input" })
      await expect.poll(names).toEqual(["a input"])
      let isClosed = false
      const closed = first.close(200).then(() => {
        isClosed = true
      })
      expect(jobs[0]?.signal.aborted).toBe(false)
      await expect.poll(() => jobs[0]?.signal.aborted).toBe(true)
      expect(isClosed).toBe(false)
      jobs[0]?.end()
      await closed
      expect(names()).toEqual(["a input"])
    })

    test("replaces the jobs of a killed process", async ({ skip }) => {
      if (!queue.takeInProcess) return skip()
      const other = await queue.takeInProcess()
      await first.enqueue({ key: "a", id: "1", reason: "input" })
      expect(await other.taken).toBe("a")
      const { jobs, names } = await workBoth()
      await other.kill()
      await first.enqueue({ key: "a", id: "2", reason: "input" })
      await pause()
      expect(names()).toEqual([])
      // Without a lease of the session, only the dispatcher notices the loss.
      await expect.poll(names).toEqual(["a continue"])
      jobs[0]?.end()
    })
  })
}
