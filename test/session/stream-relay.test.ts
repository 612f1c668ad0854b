import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest"
import { createTackle } from "../../src/engine/create-tackle.ts"
import { withDelta } from "../../src/event/part-delta.ts"
import type { Part } from "../../src/schema/part.ts"
import type { SessionEvent } from "../../src/session/session-events.ts"
import { migratePostgres, openPostgresStore } from "../../src/store/postgres.ts"
import { type Script, startModelServer } from "../../src/testing/model-server.ts"
import { temporaryProject } from "../../src/testing/project.ts"
import { describePostgres, type PostgresServer, startPostgres } from "../postgres.ts"

describePostgres("streamed text between engines with PostgreSQL", () => {
  let postgres: PostgresServer

  beforeAll(async () => {
    postgres = await startPostgres()
    await migratePostgres(postgres.url())
  })
  afterAll(() => postgres.stop())

  /** Two engines with stores of their own. The first runs a session. */
  async function twoEngines(script: Script, streamHost?: string) {
    const project = await temporaryProject()
    const model = await startModelServer({ script })
    const stores = [await openPostgresStore(postgres.url()), await openPostgresStore(postgres.url())] as const
    // Changes are noticed late, so that the end of a run may arrive before them.
    const { watch } = stores[1]
    stores[1].watch = (listener) => watch((sessionIDs) => void setTimeout(listener, 300, sessionIDs))
    const open = (index: 0 | 1) =>
      createTackle({
        directory: project.directory,
        dataDirectory: project.path(`.data-${index}`),
        store: stores[index],
        streamHost,
        model: "test/m",
        providers: { test: { options: { baseURL: model.url, apiKey: "k" }, models: { m: {} } } },
        permission: { "*": "allow" },
      })
    const [runner, follower] = [await open(0), await open(1)]
    onTestFinished(async () => {
      for (const end of [runner, follower, ...stores, model]) await end.close()
      await project.remove()
    })
    const session = await runner.sessions.create()
    /** Receivers of the texts that the runner sends through the database. */
    const mailed: string[] = []
    const { mail } = stores[0]
    if (!mail) throw new Error("the store has no mail")
    const { send } = mail
    mail.send = (address, texts) => {
      if (address !== "followers") mailed.push(address)
      return send(address, texts)
    }
    return { session, runner, follower, mailed }
  }

  /** Follows a session until a run is completed. */
  async function follow(tackle: Awaited<ReturnType<typeof createTackle>>, id: string, after = 0) {
    const session = await tackle.sessions.get(id)
    if (!session) throw new Error("the session is not stored")
    const events: SessionEvent[] = []
    const stop = new AbortController()
    const done = (async () => {
      for await (const event of session.events({ after, signal: stop.signal })) {
        events.push(event)
        if (event.type === "run.completed") break
      }
    })()
    /** The texts of the answer that a client shows, one after each event. */
    const shown = () => {
      const parts = new Map<string, Part>()
      return events.flatMap((event) => {
        if (event.type === "part.updated") parts.set(event.part.id, event.part)
        const part = event.type === "part.delta" && parts.get(event.partID)
        if (part && event.type === "part.delta") parts.set(part.id, withDelta(part, event))
        const text = [...parts.values()].find((each) => each.type === "text" && each.time)
        return text?.type === "text" ? text.text : []
      })
    }
    return { events, done, shown, stop: () => stop.abort(), session }
  }

  const long = Array.from({ length: 60 }, (_, index) => `wörd${index} 🙂 `).join("")

  test.each([
    ["directly", undefined],
    // An address of no machine: see RFC 5737.
    ["through the database if no address can be used", "192.0.2.1"],
  ])("arrives %s while the model writes, then the end of the run", async (_, streamHost) => {
    const script = [{ text: long, pieceSize: 6, pieceDelayMs: 10 }]
    const { session, follower, mailed } = await twoEngines(script, streamHost)
    const { done, shown, events } = await follow(follower, session.id)
    await session.send("go")
    await done
    expect(shown().filter((text) => !long.startsWith(text))).toEqual([])
    expect(new Set(shown()).size).toBeGreaterThan(5)
    const last = events.findLastIndex((event) => event.type === "part.updated")
    const texts = events.flatMap((event) =>
      event.type === "part.updated" && event.part.type === "text" ? [event.part] : [],
    )
    expect(texts.at(-1)).toMatchObject({ text: long, time: { end: expect.any(Number) } })
    expect(events.at(-1)?.type).toBe("run.completed")
    expect(last).toBeLessThan(events.length - 1)
    expect(mailed.length > 0).toBe(streamHost !== undefined)
  })

  test.each([undefined, "192.0.2.1"])("reaches a follower that joins late (%s)", async (streamHost) => {
    const script = [{ text: long.repeat(30), pieceSize: 200, pieceDelayMs: 40 }]
    const { session, follower } = await twoEngines(script, streamHost)
    await session.send("go")
    await expect.poll(async () => JSON.stringify(await session.messages()).includes("step-start")).toBe(true)
    await new Promise((resolve) => setTimeout(resolve, 300))
    const { done, shown } = await follow(follower, session.id)
    await done
    const texts = [...new Set(shown())].filter((text) => text !== "")
    // Several notifications are needed for this text.
    expect(texts[0]?.length).toBeGreaterThan(1000)
    expect(texts.length).toBeGreaterThan(5)
    expect(texts.filter((text) => !long.repeat(30).startsWith(text))).toEqual([])
    expect(texts.at(-1)).toBe(long.repeat(30))
  })

  test("never replaces a stored part by an earlier state", async () => {
    const { session, follower } = await twoEngines(({ body: { messages } }) =>
      messages.filter(({ role }) => role === "tool").length < 12
        ? { calls: [{ name: "glob", arguments: { pattern: "*.none" } }] }
        : { text: "Done." },
    )
    const { done, events } = await follow(follower, session.id)
    await session.send("go")
    await done
    const seen = new Map<string, Part>()
    for (const event of events) if (event.type === "part.updated") seen.set(event.part.id, event.part)
    const stored = (await session.messages()).flatMap(({ parts }) => parts)
    expect([...seen.values()].sort((a, b) => (a.id < b.id ? -1 : 1))).toEqual(
      stored.sort((a, b) => (a.id < b.id ? -1 : 1)),
    )
  })

  test("is not sent while no engine follows the session", async () => {
    const script = [{ text: long, pieceSize: 6, pieceDelayMs: 10 }, { text: "Done." }]
    const { session, follower, mailed } = await twoEngines(script, "192.0.2.1")
    const { stop, done } = await follow(follower, session.id)
    stop()
    await done
    await session.send("go")
    await session.wait()
    expect(mailed).toEqual([])
  })
})
