import fc from "fast-check"
import { afterEach, beforeEach, describe, expect, test } from "vitest"
import type { Input } from "../../src/schema/input.ts"
import type { Part } from "../../src/schema/part.ts"
import type { Grant } from "../../src/schema/permission.ts"
import type { Session } from "../../src/schema/session.ts"
import type { Todo } from "../../src/schema/todo.ts"
import { allSessions } from "../../src/store/session-pages.ts"
import {
  type Change,
  type MessagePage,
  maxSessions,
  type SessionFilter,
  type Store,
  StoreError,
} from "../../src/store/store.ts"
import { aMessage, aPart, aSession } from "./records.ts"

function aGrant(id: string, more: Partial<Grant>): Grant {
  const rule = { permission: "bash", pattern: "ls *", action: "allow" } as const
  return { id, scope: "project", worktree: "/w", ...rule, time: { created: 1 }, ...more }
}

function anInput(id: string, more: Partial<Input>): Input {
  const text = { text: id, digest: id, delivery: "queue", state: "pending" } as const
  return { id, sessionID: "ses_1", seq: 0, position: 1, ...text, time: { created: 1 }, ...more }
}

const aTodo: Todo = { content: "test", status: "pending", priority: "medium" }

const session = (id: string, more?: Partial<Session>): Change => ({
  kind: "session",
  session: aSession(id, more),
})
const message = (id: string, sessionID: string): Change => ({
  kind: "message",
  message: aMessage(id, sessionID),
})
const part = (id: string, messageID: string, sessionID: string, text?: string): Change => ({
  kind: "part",
  part: aPart(id, messageID, sessionID, text),
})
const grant = (id: string, more: Partial<Grant>): Change => ({ kind: "grant", grant: aGrant(id, more) })

/** The behaviour that every implementation of {@link Store} has. `open` returns a new, empty store. */
export function testStore(name: string, open: () => Promise<Store>): void {
  describe(`${name} store`, () => {
    let store: Store

    beforeEach(async () => {
      store = await open()
    })
    afterEach(async () => {
      await store.close()
    })

    const texts = async (sessionID: string, page?: MessagePage) =>
      (await store.messages(sessionID, page)).map(({ message, parts }) => [
        message.id,
        ...parts.map((part) => (part.type === "text" ? part.text : part.type)),
      ])

    test("is empty at first", async () => {
      expect(await store.session("ses_1")).toBeUndefined()
      expect(await store.sessions()).toEqual([])
      expect(await store.messages("ses_1")).toEqual([])
      expect(await store.todos("ses_1")).toEqual([])
      expect(await store.grants({ worktree: "/w", sessionID: "ses_1" })).toEqual([])
      expect(await store.deleteSession("ses_1")).toBe(false)
    })

    test("an empty commit changes nothing", async () => {
      await store.commit([])
      expect(await store.sessions()).toEqual([])
    })

    test("returns stored values completely", async () => {
      const whole = aSession("ses_1", {
        title: "quotes \"'` and \u0000 \ud83d\ude00 \ud800 end",
        model: { providerID: "a", modelID: "b/c" },
        parentID: "ses_0",
      })
      await store.commit([{ kind: "session", session: whole }])
      expect(await store.session("ses_1")).toEqual(whole)
    })

    test("replaces a value and keeps its children", async () => {
      await store.commit([session("ses_1"), message("msg_1", "ses_1"), part("prt_1", "msg_1", "ses_1")])
      await store.commit([session("ses_1", { title: "new" })])
      await store.commit([message("msg_1", "ses_1")])
      await store.commit([part("prt_1", "msg_1", "ses_1", "second")])
      expect((await store.session("ses_1"))?.title).toBe("new")
      expect(await texts("ses_1")).toEqual([["msg_1", "second"]])
    })

    test("lists messages and parts in the order of ids", async () => {
      await store.commit([session("ses_1"), session("ses_2")])
      await store.commit([message("msg_2", "ses_1"), message("msg_1", "ses_1"), message("msg_15", "ses_2")])
      await store.commit([
        part("prt_4", "msg_2", "ses_1"),
        part("prt_9", "msg_15", "ses_2"),
        part("prt_1", "msg_2", "ses_1"),
        part("prt_3", "msg_1", "ses_1"),
      ])
      expect(await texts("ses_1")).toEqual([
        ["msg_1", "prt_3"],
        ["msg_2", "prt_1", "prt_4"],
      ])
    })

    test("returns pages after an id and the newest messages in order", async () => {
      const ids = ["msg_1", "msg_2", "msg_3", "msg_4"]
      await store.commit([session("ses_1"), ...ids.map((id) => message(id, "ses_1"))])
      await store.commit(ids.map((id) => part(`prt_${id}`, id, "ses_1")))
      const page = async (options: MessagePage) => (await texts("ses_1", options)).map(([id]) => id)
      expect(await page({ after: "msg_2" })).toEqual(["msg_3", "msg_4"])
      expect(await page({ limit: 2 })).toEqual(["msg_3", "msg_4"])
      expect(await page({ after: "msg_1", limit: 2 })).toEqual(["msg_3", "msg_4"])
      expect(await page({ limit: 0 })).toEqual([])
      expect(await page({ limit: 0, from: "oldest" })).toEqual([])
      expect(await page({ before: "msg_3" })).toEqual(["msg_1", "msg_2"])
      expect(await page({ before: "msg_4", limit: 2 })).toEqual(["msg_2", "msg_3"])
      expect(await page({ after: "msg_1", before: "msg_4" })).toEqual(["msg_2", "msg_3"])
      expect(await page({ limit: 2, from: "oldest" })).toEqual(["msg_1", "msg_2"])
      expect(await page({ after: "msg_1", limit: 2, from: "oldest" })).toEqual(["msg_2", "msg_3"])
      expect(await page({ before: "msg_1" })).toEqual([])
      expect(await page({ after: "msg_4" })).toEqual([])
      expect(await texts("ses_1", { limit: 1 })).toEqual([["msg_4", "prt_msg_4"]])
    })

    test("returns the whole session in consecutive pages in both directions", async () => {
      await fc.assert(
        fc.asyncProperty(
          fc.integer({ min: 0, max: 25 }),
          fc.integer({ min: 1, max: 9 }),
          async (count, size) => {
            const id = `ses_${count}_${size}`
            const ids = Array.from(
              { length: count },
              (_, index) => `msg_${id}_${String(index).padStart(2, "0")}`,
            )
            await store.commit([session(id), ...ids.map((each) => message(each, id))])
            const forward: string[] = []
            const back: string[] = []
            const readOne = async (page: MessagePage) =>
              (await store.messages(id, { ...page, limit: size })).map((entry) => entry.message.id)
            for (let page = await readOne({ from: "oldest" }); page.length > 0; ) {
              forward.push(...page)
              page = await readOne({ after: page.at(-1) ?? "", from: "oldest" })
            }
            for (let page = await readOne({}); page.length > 0; ) {
              back.unshift(...page)
              page = await readOne({ before: page[0] ?? "" })
            }
            expect(forward).toEqual(ids)
            expect(back).toEqual(ids)
          },
        ),
      )
    })

    describe("the search", () => {
      const said = (id: string, text: string, sessionID = "ses_1") =>
        part(id, `msg_${sessionID}`, sessionID, text)
      const begin = (sessionID: string, more: Partial<Session> = {}) => [
        session(sessionID, { title: "", ...more }),
        message(`msg_${sessionID}`, sessionID),
      ]
      const found = async (query: string, filter?: SessionFilter) =>
        (await store.search(query, filter)).map((hit) => hit.session.id)

      test("finds all words in any order and place, without regard to case and accents", async () => {
        await store.commit([
          ...begin("ses_1", { title: "Über die Straße" }),
          said("prt_1", "Résumé of `foo_bar`"),
        ])
        for (const query of [
          "uber",
          "ÜBER",
          "resume",
          "foo",
          "bar foo",
          "strasse",
          "straße die",
          "über resume",
        ])
          expect([query, await found(query)]).toEqual([query, query === "strasse" ? [] : ["ses_1"]])
        for (const query of ["missing", "resume missing", "oo"]) expect(await found(query)).toEqual([])
      })

      test("matches the beginning of the last word only", async () => {
        await store.commit([...begin("ses_1"), said("prt_1", "parse the configuration")])
        expect(await found("conf")).toEqual(["ses_1"])
        expect(await found("parse conf")).toEqual(["ses_1"])
        expect(await found("conf parse")).toEqual([])
      })

      test("treats quotes, operators and all other characters as text, and never fails", async () => {
        await store.commit([...begin("ses_1"), said("prt_1", "one AND two NOT three")])
        for (const query of [
          '"one',
          "one*",
          "one AND two",
          "NOT one",
          "(one",
          "one:",
          "^one",
          "one'; --",
          "-one",
        ])
          expect([query, await found(query)]).toEqual([query, ["ses_1"]])
        for (const query of ["", " ", "***", '""', "NEAR(one)", "\u0000", "\ud800", "one OR missing"])
          expect(await found(query)).toEqual([])
        expect(await found(Array.from({ length: 500 }, () => "one").join(" "))).toEqual(["ses_1"])
        await fc.assert(
          fc.asyncProperty(fc.string({ unit: "binary" }), async (query) => {
            expect(await store.search(query)).toBeInstanceOf(Array)
          }),
        )
      })

      test("returns the first text with all words, or else the first with the first word", async () => {
        await store.commit([
          ...begin("ses_1", { title: "red" }),
          said("prt_1", "blue only"),
          said("prt_2", "blue and red"),
        ])
        expect(await store.search("red")).toMatchObject([{ text: "red" }])
        expect((await store.search("red"))[0]).not.toHaveProperty("messageID")
        expect(await store.search("blue red")).toMatchObject([
          { text: "blue and red", messageID: "msg_ses_1", role: "user" },
        ])
        expect(await store.search("only and")).toMatchObject([{ text: "blue only" }])
      })

      test("reads names of files and arguments of calls, but no outputs, reasoning and notes", async () => {
        const base = { sessionID: "ses_1", messageID: "msg_ses_1" }
        const parts: Part[] = [
          {
            ...base,
            id: "prt_1",
            type: "file",
            mime: "text/plain",
            url: "data:,content",
            filename: "plan.txt",
          },
          {
            ...{ ...base, id: "prt_2", type: "tool", callID: "c", tool: "bash" },
            state: {
              ...{ status: "completed", input: { command: "make lint", more: [{ deep: "value" }] } },
              ...{ output: "outputs", title: "titles", metadata: {}, time: { start: 1, end: 2 } },
            },
          },
          { ...base, id: "prt_3", type: "reasoning", text: "reasons", time: { start: 1 } },
          { ...base, id: "prt_4", type: "text", text: "notes", synthetic: true },
        ]
        await store.commit([
          ...begin("ses_1"),
          ...parts.map((each): Change => ({ kind: "part", part: each })),
        ])
        for (const query of ["plan", "bash", "lint", "value"]) expect(await found(query)).toEqual(["ses_1"])
        for (const query of ["content", "outputs", "titles", "reasons", "notes"])
          expect([query, await found(query)]).toEqual([query, []])
      })

      test("follows every change, and forgets what is removed", async () => {
        await store.commit([
          ...begin("ses_1", { title: "before" }),
          said("prt_1", "first"),
          said("prt_2", "other"),
        ])
        expect(await found("first")).toEqual(["ses_1"])
        await store.commit([
          session("ses_1", { title: "after" }),
          said("prt_1", "second"),
          { kind: "part.remove", sessionID: "ses_1", messageID: "msg_ses_1", partID: "prt_2" },
        ])
        for (const query of ["before", "first", "other"]) expect(await found(query)).toEqual([])
        for (const query of ["after", "second"]) expect(await found(query)).toEqual(["ses_1"])
        await store.deleteSession("ses_1")
        for (const query of ["after", "second"]) expect(await found(query)).toEqual([])
        await store.reclaim()
        await store.commit([...begin("ses_1"), said("prt_1", "third")])
        expect(await found("second")).toEqual([])
        expect(await found("third")).toEqual(["ses_1"])
      })

      test("selects and orders like the list", async () => {
        for (const [id, worktree, parentID, updated] of [
          ["ses_1", "/w", undefined, 1],
          ["ses_2", "/w", undefined, 3],
          ["ses_3", "/v", undefined, 2],
          ["ses_4", "/w", "ses_1", 4],
        ] as const)
          await store.commit([
            ...begin(id, { worktree, parentID, time: { created: 1, updated } }),
            said(`prt_${id}`, "word", id),
          ])
        expect(await found("word")).toEqual(["ses_4", "ses_2", "ses_3", "ses_1"])
        expect(await found("word", { worktree: "/w", parentID: null })).toEqual(["ses_2", "ses_1"])
        expect(await found("word", { parentID: null, limit: 1 })).toEqual(["ses_2"])
        expect(await found("word", { parentID: "ses_1" })).toEqual(["ses_4"])
      })

      test("searches at the same time and between changes", async () => {
        const ids = Array.from({ length: 30 }, (_, index) => `ses_${String(index).padStart(2, "0")}`)
        for (const id of ids) await store.commit([...begin(id), said(`prt_${id}`, "word", id)])
        const searches = [found("word"), found("word"), store.deleteSession("ses_29"), found("word")]
        await Promise.all(searches)
        expect((await found("word")).sort()).toEqual(ids.slice(0, -1))
      })
    })

    test("keeps all data when it reclaims space", async () => {
      for (const id of ["ses_1", "ses_2"])
        await store.commit([session(id), message(`msg_${id}`, id), part(`prt_${id}`, `msg_${id}`, id)])
      await store.deleteSession("ses_1")
      await store.reclaim()
      await store.reclaim()
      expect(await texts("ses_2")).toEqual([["msg_ses_2", "prt_ses_2"]])
      expect(await texts("ses_1")).toEqual([])
    })

    test("removes a part only for its own session", async () => {
      await store.commit([session("ses_1"), message("msg_1", "ses_1"), part("prt_1", "msg_1", "ses_1")])
      await store.commit([session("ses_2")])
      await store.commit([{ kind: "part.remove", sessionID: "ses_2", messageID: "msg_1", partID: "prt_1" }])
      expect(await texts("ses_1")).toEqual([["msg_1", "prt_1"]])
      await store.commit([{ kind: "part.remove", sessionID: "ses_1", messageID: "msg_1", partID: "prt_1" }])
      await store.commit([{ kind: "part.remove", sessionID: "ses_1", messageID: "msg_1", partID: "prt_1" }])
      expect(await texts("ses_1")).toEqual([["msg_1"]])
    })

    test("numbers the changes of each session without gaps", async () => {
      expect(await store.sequence("ses_1")).toBe(0)
      const changes = [session("ses_1"), session("ses_2"), message("msg_1", "ses_1"), grant("gra_1", {})]
      expect(await store.commit(changes)).toEqual([1, 1, 2, 0])
      expect(await store.commit([part("prt_1", "msg_1", "ses_1")])).toEqual([3])
      await expect(store.commit([part("prt_2", "msg_1", "ses_1"), message("m", "ses_9")])).rejects.toThrow()
      expect(await store.commit([session("ses_1"), part("prt_2", "msg_1", "ses_1")])).toEqual([4, 5])
      expect([await store.sequence("ses_1"), await store.sequence("ses_2")]).toEqual([5, 1])
    })

    test("returns each object that changed after a number once, with its last number", async () => {
      await store.commit([session("ses_1"), message("msg_1", "ses_1"), part("prt_1", "msg_1", "ses_1")])
      await store.commit([part("prt_2", "msg_1", "ses_1"), part("prt_1", "msg_1", "ses_1", "second")])
      await store.commit([{ kind: "part.remove", sessionID: "ses_1", messageID: "msg_1", partID: "prt_2" }])
      await store.commit([{ kind: "todos", sessionID: "ses_1", todos: [aTodo] }, session("ses_2")])
      const second = { kind: "part", part: aPart("prt_1", "msg_1", "ses_1", "second") }
      const removed = { kind: "part.remove", sessionID: "ses_1", messageID: "msg_1", partID: "prt_2" }
      const later = [
        { seq: 5, change: second },
        { seq: 6, change: removed },
        { seq: 7, change: { kind: "todos", sessionID: "ses_1", todos: [aTodo] } },
      ]
      const first = [
        { seq: 1, change: session("ses_1") },
        { seq: 2, change: message("msg_1", "ses_1") },
      ]
      expect(await store.changes("ses_1", 0)).toEqual([...first, ...later])
      expect(await store.changes("ses_1", 4)).toEqual(later)
      expect(await store.changes("ses_1", 7)).toEqual([])
      expect(await store.changes("ses_9", 0)).toEqual([])
    })

    test("applies any changes so that a reader of any number has the same objects", async () => {
      const step = fc.record({
        kind: fc.constantFrom("part", "remove", "session", "todos"),
        id: fc.integer({ min: 1, max: 4 }),
        text: fc.string(),
      })
      await fc.assert(
        fc.asyncProperty(fc.array(step, { maxLength: 20 }), fc.nat(20), async (steps, asked) => {
          await store.deleteSession("ses_1")
          await store.commit([session("ses_1"), message("msg_1", "ses_1")])
          const known = new Map<string, unknown>()
          for (const [index, { kind, id, text }] of steps.entries()) {
            if (index === asked % (steps.length + 1)) await read(known, 0)
            const ids = { sessionID: "ses_1", messageID: "msg_1" }
            if (kind === "part") await store.commit([part(`prt_${id}`, "msg_1", "ses_1", text)])
            if (kind === "remove") await store.commit([{ kind: "part.remove", ...ids, partID: `prt_${id}` }])
            if (kind === "session") await store.commit([session("ses_1", { title: text })])
            if (kind === "todos")
              await store.commit([
                { kind: "todos", sessionID: "ses_1", todos: [{ ...aTodo, content: text }] },
              ])
          }
          await read(known, Number(known.get("seq") ?? 0))
          const parts = (await store.messages("ses_1")).flatMap(({ parts }) => parts)
          expect([...known].filter(([key]) => key.startsWith("prt")).sort()).toEqual(
            parts.map((each) => [each.id, each]),
          )
          expect(known.get("session")).toEqual(await store.session("ses_1"))
          if (known.has("todos")) expect(known.get("todos")).toEqual(await store.todos("ses_1"))
        }),
        { numRuns: 40 },
      )

      async function read(known: Map<string, unknown>, after: number) {
        for (const { seq, change } of await store.changes("ses_1", after)) {
          known.set("seq", seq)
          if (change.kind === "part") known.set(change.part.id, change.part)
          if (change.kind === "part.remove") known.delete(change.partID)
          if (change.kind === "session") known.set("session", change.session)
          if (change.kind === "todos") known.set("todos", change.todos)
        }
      }
    })

    test("stores inputs by session, and lists the pending ones by position", async () => {
      await store.commit([session("ses_1"), session("ses_2")])
      await expect(
        store.updateInputs("ses_9", undefined, () => [anInput("inp_1", { sessionID: "ses_9" })]),
      ).rejects.toThrow()
      const stored = await store.updateInputs("ses_1", undefined, () => [
        anInput("inp_1", { position: 2 }),
        anInput("inp_2", { position: 1 }),
      ])
      expect(stored.map(({ input, seq }) => [input.id, input.seq, seq])).toEqual([
        ["inp_1", 2, 2],
        ["inp_2", 3, 3],
      ])
      await store.updateInputs("ses_2", undefined, () => [anInput("inp_1", { sessionID: "ses_2" })])
      expect((await store.inputs("ses_1")).map(({ id }) => id)).toEqual(["inp_2", "inp_1"])
      const holder = { id: "eng_1", pid: 1, started: "1" }
      await store.lease("ses_1", holder)
      const [done] = await store.updateInputs("ses_1", "inp_2", (current) => {
        expect(current.holder).toEqual(holder)
        expect(current.pending.map(({ id }) => id)).toEqual(["inp_2", "inp_1"])
        return current.named ? [{ ...current.named, state: "promoted" }] : []
      })
      expect(done).toMatchObject({ seq: 4, input: { id: "inp_2", seq: 3, state: "promoted" } })
      expect((await store.inputs("ses_1")).map(({ id }) => id)).toEqual(["inp_1"])
      await store.updateInputs("ses_1", "inp_2", ({ named }) => {
        expect(named?.state).toBe("promoted")
        return []
      })
      await expect(
        store.updateInputs("ses_1", undefined, () => {
          throw new Error("no")
        }),
      ).rejects.toThrow("no")
      let calls = 0
      const also = async () => {
        calls += 1
      }
      await store.updateInputs("ses_1", undefined, () => [], { also })
      expect(calls).toBe(0)
      await store.updateInputs("ses_2", undefined, () => [anInput("inp_2", { sessionID: "ses_2" })], { also })
      expect(calls).toBe(1)
      expect((await store.sessionsWithInputs()).sort()).toEqual(["ses_1", "ses_2"])
      await store.deleteSession("ses_2")
      expect(await store.sessionsWithInputs()).toEqual(["ses_1"])
      const last = (await store.changes("ses_1", 2)).map(({ seq }) => seq)
      expect(last).toEqual([4])
    })

    test("filters sessions by worktree, parent and limit, newest first", async () => {
      await store.commit([
        session("ses_1", { time: { created: 1, updated: 30 } }),
        session("ses_2", { time: { created: 1, updated: 10 }, worktree: "/other" }),
        session("ses_3", { time: { created: 1, updated: 20 }, parentID: "ses_1" }),
      ])
      const ids = async (filter?: Parameters<Store["sessions"]>[0]) =>
        (await store.sessions(filter)).map(({ id }) => id)
      expect(await ids()).toEqual(["ses_1", "ses_3", "ses_2"])
      expect(await ids({ worktree: "/w" })).toEqual(["ses_1", "ses_3"])
      expect(await ids({ parentID: null })).toEqual(["ses_1", "ses_2"])
      expect(await ids({ parentID: "ses_1", worktree: "/w" })).toEqual(["ses_3"])
      expect(await ids({ limit: 1 })).toEqual(["ses_1"])
      await store.commit([session("ses_2", { time: { created: 1, updated: 40 } })])
      expect(await ids({ worktree: "/w" })).toEqual(["ses_2", "ses_1", "ses_3"])
    })

    test("selects sessions by directory, roots, tenant and age", async () => {
      const at = (id: string, directory: string, updated: number, tenant?: string) =>
        session(id, { directory, tenant, time: { created: 1, updated } })
      await store.commit([
        at("ses_1", "/w", 10),
        at("ses_2", "/w/below", 20, "one"),
        at("ses_3", "/wide", 30, "two"),
        at("ses_4", '/w/"quoted\\', 40),
        // The texts of a session are not its directory.
        { kind: "session", session: aSession("ses_5", { directory: "/x", title: '"directory":"/w"' }) },
      ])
      const ids = async (filter: Parameters<Store["page"]>[0]) =>
        (await store.page(filter)).map((row) => row.session.id)
      expect(await ids({ directory: "/w" })).toEqual(["ses_1"])
      expect(await ids({ directory: '/w/"quoted\\' })).toEqual(["ses_4"])
      expect(await ids({ roots: ["/w"] })).toEqual(["ses_4", "ses_2", "ses_1"])
      expect(await ids({ roots: ["/wide", "/w/below"] })).toEqual(["ses_3", "ses_2"])
      expect(await ids({ roots: ["/"] })).toHaveLength(5)
      expect(await ids({ roots: [] })).toEqual([])
      expect(await ids({ tenant: "one" })).toEqual(["ses_2"])
      expect(await ids({ updatedUntil: 20, parentID: null })).toEqual(["ses_2", "ses_1", "ses_5"])
      expect((await store.search("ses", { roots: ["/wide"] })).map((hit) => hit.session.id)).toEqual([
        "ses_3",
      ])
    })

    test("reads a list page by page, also if sessions change or are deleted in between", async () => {
      const ids = Array.from({ length: 7 }, (_, index) => `ses_${index}`)
      // Two sessions share each time.
      const time = (index: number) => ({ created: 1, updated: Math.floor(index / 2) })
      await store.commit(ids.map((id, index) => session(id, { time: time(index) })))
      const [first, second] = [await store.page({ limit: 3 }), await store.search("ses", { limit: 3 })]
      expect(first.map((row) => row.session.id)).toEqual(["ses_6", "ses_5", "ses_4"])
      expect(second.map(({ cursor }) => cursor)).toEqual(first.map(({ cursor }) => cursor))
      await store.deleteSession("ses_4")
      await store.commit([session("ses_5", { time: { created: 1, updated: 9 } })])
      const after = first.at(-1)?.cursor
      const rest = await store.page({ after, limit: 3 })
      expect(rest.map((row) => row.session.id)).toEqual(["ses_3", "ses_2", "ses_1"])
      expect((await store.search("ses", { after })).map((hit) => hit.session.id)).toEqual([
        "ses_3",
        "ses_2",
        "ses_1",
        "ses_0",
      ])
      await expect(store.page({ after: "x" })).rejects.toThrow("cursor is not valid")
      expect((await allSessions(store)).map(({ id }) => id)).toEqual([
        "ses_5",
        "ses_6",
        "ses_3",
        "ses_2",
        "ses_1",
        "ses_0",
      ])
    })

    test("returns a hundred sessions by default, and never an unlimited number", async () => {
      await store.commit(Array.from({ length: 101 }, (_, index) => session(`ses_${index}`)))
      expect(await store.sessions()).toHaveLength(100)
      expect(await store.sessions({ limit: 1000 })).toHaveLength(101)
      for (const read of [store.sessions, store.page, (filter: object) => store.search("ses", filter)])
        await expect(read({ limit: maxSessions + 1 })).rejects.toThrow(`limited to ${maxSessions} sessions`)
    })

    test("replaces all to-dos", async () => {
      await store.commit([session("ses_1"), { kind: "todos", sessionID: "ses_1", todos: [aTodo, aTodo] }])
      await store.commit([{ kind: "todos", sessionID: "ses_1", todos: [{ ...aTodo, status: "completed" }] }])
      expect(await store.todos("ses_1")).toEqual([{ ...aTodo, status: "completed" }])
    })

    test("returns grants of the project and the session, oldest first, until removed", async () => {
      await store.commit([
        session("ses_1"),
        session("ses_2"),
        grant("gra_1", { time: { created: 3 } }),
        grant("gra_2", { scope: "session", sessionID: "ses_1", time: { created: 2 } }),
        grant("gra_3", { scope: "session", sessionID: "ses_2" }),
        grant("gra_4", { worktree: "/other" }),
      ])
      const ids = async (scope: Parameters<Store["grants"]>[0]) =>
        (await store.grants(scope)).map(({ id }) => id)
      expect(await ids({ worktree: "/w", sessionID: "ses_1" })).toEqual(["gra_2", "gra_1"])
      expect(await ids({ worktree: "/w" })).toEqual(["gra_1"])
      expect(await ids({ sessionID: "ses_2" })).toEqual(["gra_3"])
      expect(await ids({})).toEqual([])
      await store.commit([{ kind: "grant.remove", grantID: "gra_1" }])
      expect(await ids({ worktree: "/w", sessionID: "ses_1" })).toEqual(["gra_2"])
    })

    test("deletes a session with its descendants and nothing else", async () => {
      await store.commit([
        session("ses_1"),
        session("ses_2", { parentID: "ses_1" }),
        session("ses_3", { parentID: "ses_2" }),
        session("ses_9"),
        message("msg_3", "ses_3"),
        message("msg_9", "ses_9"),
        part("prt_3", "msg_3", "ses_3"),
        part("prt_9", "msg_9", "ses_9"),
        { kind: "todos", sessionID: "ses_3", todos: [aTodo] },
        grant("gra_1", { scope: "session", sessionID: "ses_3" }),
        grant("gra_2", {}),
      ])
      expect(await store.deleteSession("ses_1")).toBe(true)
      expect((await store.sessions()).map(({ id }) => id)).toEqual(["ses_9"])
      expect(await texts("ses_3")).toEqual([])
      expect(await store.todos("ses_3")).toEqual([])
      expect(await store.grants({ sessionID: "ses_3" })).toEqual([])
      expect(await store.grants({ worktree: "/w" })).toHaveLength(1)
      expect(await texts("ses_9")).toEqual([["msg_9", "prt_9"]])
      // The ids can be used again.
      await store.commit([session("ses_3"), message("msg_3", "ses_3")])
      expect(await texts("ses_3")).toEqual([["msg_3"]])
    })

    test.each([
      ["a message without its session", message("msg_2", "ses_unknown")],
      ["a part without its message", part("prt_2", "msg_unknown", "ses_1")],
      ["a part whose message is another session's", part("prt_2", "msg_1", "ses_2")],
      ["to-dos without their session", { kind: "todos", sessionID: "ses_unknown", todos: [] } as Change],
      [
        "what JSON has no form for",
        { kind: "session", session: { ...aSession("ses_3"), title: 1n as unknown as string } } as Change,
      ],
    ])("rejects %s with the rest of the commit", async (_, wrong) => {
      await store.commit([session("ses_1"), session("ses_2"), message("msg_1", "ses_1")])
      const before = [
        session("ses_4"),
        session("ses_1", { title: "changed" }),
        part("prt_1", "msg_1", "ses_1"),
      ]
      await expect(store.commit([...before, wrong, session("ses_5")])).rejects.toThrow(StoreError)
      await expect(store.commit([wrong])).rejects.toThrow(StoreError)
      expect((await store.sessions()).map(({ id, title }) => [id, title])).toEqual([
        ["ses_2", "ses_2"],
        ["ses_1", "ses_1"],
      ])
      expect(await texts("ses_1")).toEqual([["msg_1"]])
      await store.commit(before)
      expect(await texts("ses_1")).toEqual([["msg_1", "prt_1"]])
    })

    test("reverts a removal with the rest of a rejected commit", async () => {
      await store.commit([session("ses_1"), message("msg_1", "ses_1"), part("prt_1", "msg_1", "ses_1")])
      const removal: Change = { kind: "part.remove", sessionID: "ses_1", messageID: "msg_1", partID: "prt_1" }
      await expect(store.commit([removal, message("msg_2", "ses_unknown")])).rejects.toThrow(StoreError)
      expect(await texts("ses_1")).toEqual([["msg_1", "prt_1"]])
    })

    test("copies given and returned values", async () => {
      const given = aSession("ses_1")
      await store.commit([{ kind: "session", session: given }])
      given.title = "changed by the giver"
      const first = await store.session("ses_1")
      if (first) first.title = "changed by the reader"
      expect((await store.session("ses_1"))?.title).toBe("ses_1")
    })

    test("reads see every earlier commit without waiting for its promise", async () => {
      await store.commit([session("ses_1"), message("msg_1", "ses_1")])
      const commits = ["a", "b", "c"].map((text) => store.commit([part("prt_1", "msg_1", "ses_1", text)]))
      expect(await texts("ses_1")).toEqual([["msg_1", "c"]])
      await Promise.all(commits)
    })

    test("stores any text", async () => {
      await store.commit([session("ses_1"), message("msg_1", "ses_1")])
      await fc.assert(
        fc.asyncProperty(fc.string({ unit: "binary" }), async (text) => {
          await store.commit([part("prt_1", "msg_1", "ses_1", text)])
          expect(await texts("ses_1")).toEqual([["msg_1", text]])
        }),
        { numRuns: 50 },
      )
    })

    test("counts what a tenant uses", async () => {
      const usage = { tenant: "acme", day: 7, tokens: 100, cost: 0.5 }
      const title = '"tenant":"other", \u0000 and \\"tenant\\":\\"other\\"'
      await store.commit([session("ses_1", { tenant: "acme", title }), session("ses_2", { title })])
      const pending = anInput("inp_1", {})
      await store.commit([
        { kind: "input", input: pending },
        { kind: "input", input: anInput("inp_2", { state: "withdrawn" }) },
        { kind: "input", input: anInput("inp_3", { sessionID: "ses_2" }) },
      ])
      await store.addUsage({ ...usage, id: "a" })
      await store.addUsage({ ...usage, id: "b" })
      // The same request again, as after a lost answer.
      await store.addUsage({ ...usage, id: "b" })
      await store.addUsage({ ...usage, id: "c", tenant: "other" })
      await store.addUsage({ ...usage, id: "d", day: 8 })
      expect(await store.tenantUsage("acme", 7)).toEqual({ running: 0, queued: 1, tokens: 200, cost: 1 })
      expect(await store.tenantUsage("other", 7)).toEqual({ running: 0, queued: 0, tokens: 100, cost: 0.5 })
      // Deleting sessions does not reduce the number of used tokens.
      await store.deleteSession("ses_1")
      expect(await store.tenantUsage("acme", 7)).toEqual({ running: 0, queued: 0, tokens: 200, cost: 1 })
    })

    test("rejects everything except closing after it is closed", async () => {
      await store.close()
      await store.close()
      await expect(store.commit([])).rejects.toThrow(/closed/)
      await expect(store.session("ses_1")).rejects.toThrow(StoreError)
      await expect(store.messages("ses_1")).rejects.toThrow(StoreError)
      await expect(store.sessions()).rejects.toThrow(StoreError)
      await expect(store.todos("ses_1")).rejects.toThrow(StoreError)
      await expect(store.grants({})).rejects.toThrow(StoreError)
      await expect(store.deleteSession("ses_1")).rejects.toThrow(StoreError)
    })
  })
}
