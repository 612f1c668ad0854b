import { describe, expect, test } from "vitest"
import type { SessionApi, TackleApi } from "../../src/client/api.ts"
import type { TackleEvent } from "../../src/event/events.ts"
import type { SessionEvent } from "../../src/session/session-events.ts"
import type { ModelServer, Script } from "../../src/testing/model-server.ts"
import type { TemporaryProject } from "../../src/testing/project.ts"
import type { Info } from "../../src/tool/tool.ts"
import { orAbort } from "../../src/util/abort.ts"
import { TackleError } from "../../src/util/errors.ts"
import { tool } from "../session/run.ts"

/** An engine, reached directly or through a client. */
export interface Opened extends AsyncDisposable {
  tackle: TackleApi
  model: ModelServer
  project: TemporaryProject
}

/** Tools and rules of the engine of a test. */
export interface Wanted {
  tools?: Info[]
  commands?: Record<string, { template: string }>
  permission?: Record<string, "allow" | "ask" | "deny">
}

/** The behaviour that every implementation of {@link TackleApi} has. The engine of `open` asks for approvals. */
export function testTackle(name: string, open: (script: Script, wanted?: Wanted) => Promise<Opened>): void {
  describe(`${name}: sessions`, () => {
    test("are created, found, listed and deleted", async () => {
      await using opened = await open(script)
      const { sessions } = opened.tackle
      const first = await sessions.create({ title: "first" })
      const second = await sessions.create({ agent: "plan" })
      expect(await first.info()).toMatchObject({ id: first.id, title: "first", agent: "build" })
      expect(await second.info()).toMatchObject({ agent: "plan" })
      const listed = await sessions.list()
      expect(listed.map(({ id }) => id)).toEqual([second.id, first.id])
      expect(await sessions.list({ limit: 1 })).toHaveLength(1)
      expect(await sessions.list({ limit: Infinity })).toHaveLength(2)
      expect(await sessions.list({ everywhere: true })).toHaveLength(2)
      expect((await sessions.get(first.id))?.id).toBe(first.id)
      expect(await first.update({ title: "changed" })).toMatchObject({ id: first.id, title: "changed" })
      expect(await first.info()).toMatchObject({ title: "changed" })
      expect(await sessions.status(first.id)).toBe("idle")
      expect(await sessions.delete(first.id)).toBe(true)
      expect(await sessions.get(first.id)).toBeUndefined()
    })

    test("are found by their texts, with an excerpt", async () => {
      await using opened = await open(() => ({ text: "The *needle* is in the haystack." }))
      const { sessions } = opened.tackle
      const first = await sessions.create()
      await first.send("where is it?")
      await first.wait()
      await sessions.create({ title: "haystack without" })
      const [found, ...others] = await sessions.list({ search: '"needle" hay' })
      expect(others).toEqual([])
      expect(found).toMatchObject({
        id: first.id,
        match: {
          excerpt: "The *needle* is in the haystack.",
          marks: [
            [5, 11],
            [23, 31],
          ],
          messageID: expect.stringMatching(/^msg_/),
          role: "assistant",
        },
      })
      const titled = (await sessions.list({ search: "haystack", everywhere: true })).map(
        ({ match }) => match?.role,
      )
      expect(titled).toEqual([undefined, "assistant"])
      expect(await sessions.list({ search: "missing" })).toEqual([])
      expect((await sessions.list({ search: " " })).map(({ match }) => match)).toEqual([undefined, undefined])
    })

    test("report the number of their last change and their to-do list", async () => {
      const todos = [{ content: "look", status: "pending", priority: "high" }]
      await using opened = await open(({ body: { messages } }) =>
        messages.at(-1)?.role === "user"
          ? { calls: [{ name: "todowrite", arguments: { todos } }] }
          : { text: "Written." },
      )
      const session = await opened.tackle.sessions.create()
      const first = await session.sequence()
      await session.send("write")
      await session.wait()
      const last = await session.sequence()
      expect(last).toBeGreaterThan(first)
      expect(await session.todos()).toEqual(todos)
      for await (const event of session.events({ after: last - 1 })) {
        expect(event.seq).toBe(last)
        break
      }
    })

    test("refuse an unknown agent and model", async () => {
      await using opened = await open(script)
      await expect(opened.tackle.sessions.create({ agent: "nobody" })).rejects.toThrow(/nobody/)
      await expect(opened.tackle.sessions.create({ model: "none/x" })).rejects.toThrow(/none/)
    })

    test("return nothing for an unknown id", async () => {
      await using opened = await open(script)
      const { sessions } = opened.tackle
      const id = "ses_unknown"
      expect(await sessions.get(id)).toBeUndefined()
      expect(await sessions.status(id)).toBeUndefined()
      expect(await sessions.delete(id)).toBe(false)
      expect(await sessions.fork(id)).toBeUndefined()
      expect(await sessions.undo(id)).toBeUndefined()
      expect(await sessions.redo(id)).toBeUndefined()
      expect(await sessions.compact(id)).toBeUndefined()
      expect(await sessions.export(id)).toBeUndefined()
    })

    test("are forked as a whole, and at a message", async () => {
      await using opened = await open(script)
      const { sessions } = opened.tackle
      const session = await sessions.create()
      await say(session, "one")
      await say(session, "two")
      const whole = await sessions.fork(session.id)
      expect(await talk(whole)).toEqual(await talk(session))
      const [first] = await session.messages()
      const part = await sessions.fork(session.id, { at: first?.message.id ?? "" })
      expect(await talk(part)).toEqual(["user: one", "model: heard one"])
      await expect(sessions.fork(session.id, { at: "msg_unknown" })).rejects.toThrow(/msg_unknown/)
    })

    test("are exported and imported", async () => {
      await using opened = await open(script)
      const { sessions } = opened.tackle
      const session = await sessions.create()
      await say(session, "one")
      const archive = await sessions.export(session.id)
      await expect(sessions.import(archive)).rejects.toThrow(session.id)
      const copy = await sessions.import(archive, { copy: true })
      expect(copy.id).not.toBe(session.id)
      expect(await talk(copy)).toEqual(await talk(session))
      expect(JSON.stringify(await sessions.export(session.id, { sanitize: true }))).not.toContain("heard one")
      await expect(sessions.import({ not: "an archive" })).rejects.toThrow(/archive/)
    })

    test("report their usage and their changes", async () => {
      await using opened = await open(script)
      const { sessions } = opened.tackle
      const session = await sessions.create()
      await say(session, "one")
      const stats = await sessions.stats({ session: session.id })
      expect(stats).toMatchObject({ sessions: 1, prompts: 1, models: [{ steps: 1, usage: stats.usage }] })
      expect(await sessions.diff(session.id)).toEqual([])
      expect(await sessions.diff("ses_unknown")).toBeUndefined()
    })

    test("return their messages in pages", async () => {
      await using opened = await open(script)
      const session = await opened.tackle.sessions.create()
      await say(session, "one")
      await say(session, "two")
      const all = await session.messages()
      expect(all).toHaveLength(4)
      const newest = await session.messages({ limit: 3 })
      expect(newest).toEqual(all.slice(1))
      expect(await session.messages({ limit: 3, before: newest[0]?.message.id ?? "" })).toEqual(
        all.slice(0, 1),
      )
    })

    test("undo and redo the files of a turn", async () => {
      const write = { name: "write", arguments: { filePath: "new.txt", content: "new\n" } }
      await using opened = await open([{ calls: [write] }, { text: "done" }], {
        permission: { "*": "allow" },
      })
      const { sessions } = opened.tackle
      const session = await sessions.create()
      await say(session, "go")
      expect(await session.undo()).toMatchObject({ prompt: "go", files: [{ kind: "removed" }] })
      expect(await session.redo()).toMatchObject({ files: [{ kind: "restored" }] })
      expect(await opened.project.read("new.txt")).toBe("new\n")
      await opened.project.write("new.txt", "changed\n")
      expect(await codeOf(session.undo())).toBe("session.undo")
      expect(await sessions.undo(session.id, { skip: true })).toMatchObject({ refused: [{ why: "skipped" }] })
    })

    test("have nothing to compact at first", async () => {
      await using opened = await open(script)
      const session = await opened.tackle.sessions.create()
      expect(await session.compact()).toMatchObject({ summarized: false, pruned: 0 })
    })
  })

  describe(`${name}: inputs`, () => {
    test("run in an idle session with any delivery", async () => {
      await using opened = await open(script)
      const session = await opened.tackle.sessions.create()
      for (const delivery of ["steer", "queue", "now"] as const) {
        const receipt = await session.send(delivery, { delivery })
        expect(receipt).toEqual({ id: expect.any(String), seq: expect.any(Number), state: "pending" })
        expect(await session.wait()).toMatchObject({ status: "completed", text: `heard ${delivery}` })
      }
    })

    test("steer a run between two steps, or wait for its end", async () => {
      const gate = createGate()
      await using opened = await open(script, gate.options)
      const session = await opened.tackle.sessions.create()
      await session.send("work")
      await gate.reached
      await session.send("later", { delivery: "queue" })
      await session.send("first")
      gate.open()
      await session.wait()
      expect(await talk(session)).toEqual([
        "user: work",
        "call: wait",
        "user: first",
        "model: heard first",
        "user: later",
        "model: heard later",
      ])
    })

    test("interrupt the run if they are urgent", async () => {
      const gate = createGate()
      await using opened = await open(script, gate.options)
      const session = await opened.tackle.sessions.create()
      await session.send("work")
      await gate.reached
      await session.send("stop that", { delivery: "now" })
      expect(await session.wait()).toMatchObject({ status: "completed", text: "heard stop that" })
    })

    test("have an id that makes a second send harmless, and a conflict visible", async () => {
      await using opened = await open(script)
      const session = await opened.tackle.sessions.create()
      const first = await session.send("hello", { id: "mine" })
      await session.wait()
      expect(await session.send("hello", { id: "mine" })).toEqual({ ...first, state: "promoted" })
      expect(await codeOf(session.send("other", { id: "mine" }))).toBe("input.conflict")
      expect(await codeOf(session.send("hello", { id: "mine", delivery: "queue" }))).toBe("input.conflict")
      expect(await codeOf(session.send(" "))).toBe("input.empty")
      expect(await codeOf(session.send("hello", { id: "a b" }))).toBe("input.id")
      await session.wait()
      expect(opened.model.requests).toHaveLength(1)
    })

    test("contain files", async () => {
      await using opened = await open(script)
      const session = await opened.tackle.sessions.create()
      const url = `data:text/plain;base64,${Buffer.from("from a file").toString("base64")}`
      await session.send("read", { files: [{ mime: "text/plain", url, filename: "note.txt" }] })
      await session.wait()
      expect(JSON.stringify(opened.model.requests[0]?.body)).toContain("from a file")
    })

    test("can be listed, edited, moved, held, released and withdrawn", async () => {
      const gate = createGate()
      await using opened = await open(script, gate.options)
      const session = await opened.tackle.sessions.create()
      await session.send("work")
      await gate.reached
      for (const id of ["a", "b", "c", "d"]) await session.send(id, { id, delivery: "queue" })
      expect(await session.inputs.edit("a", { text: "A" })).toMatchObject({ id: "a", text: "A" })
      await session.inputs.edit("c", { position: 0 })
      await session.inputs.edit("b", { held: true })
      expect(await session.inputs.withdraw("d")).toMatchObject({ state: "withdrawn" })
      expect((await session.inputs.list()).map(({ text }) => text)).toEqual(["c", "A", "b"])
      gate.open()
      await session.wait()
      await session.inputs.edit("b", { held: false })
      await session.wait()
      const heard = (await talk(session)).filter((line) => line.startsWith("model: heard"))
      expect(heard).toEqual(["model: heard c", "model: heard A", "model: heard b"])
      expect(await codeOf(session.inputs.edit("b", { text: "x" }))).toBe("input.ended")
      expect(await codeOf(session.inputs.withdraw("d"))).toBe("input.ended")
      expect(await codeOf(session.inputs.withdraw("nobody"))).toBe("input.unknown")
    })

    test("can get other files", async () => {
      const gate = createGate()
      await using opened = await open(script, gate.options)
      const session = await opened.tackle.sessions.create()
      await session.send("work")
      await gate.reached
      await session.send("read", { id: "a", delivery: "queue" })
      const url = `data:text/plain;base64,${Buffer.from("from a file").toString("base64")}`
      const edited = await session.inputs.edit("a", {
        files: [{ mime: "text/plain", url, filename: "n.txt" }],
      })
      expect(edited.files).toHaveLength(1)
      gate.open()
      await session.wait()
      expect(JSON.stringify(opened.model.requests.at(-1)?.body)).toContain("from a file")
    })

    test("wait after an interrupt until they are resumed", async () => {
      const gate = createGate()
      await using opened = await open(script, gate.options)
      const session = await opened.tackle.sessions.create()
      await session.send("work")
      await gate.reached
      await session.send("later", { delivery: "queue" })
      expect(await session.interrupt()).toEqual([])
      expect(await session.wait()).toMatchObject({ status: "interrupted" })
      expect(await session.inputs.list()).toMatchObject([{ text: "later", paused: true }])
      await session.inputs.resume()
      expect(await session.wait()).toMatchObject({ text: "heard later" })
    })

    test("are returned by an interrupt that clears the queue", async () => {
      const gate = createGate()
      await using opened = await open(script, gate.options)
      const session = await opened.tackle.sessions.create()
      await session.send("work")
      await gate.reached
      await session.send("later", { delivery: "queue" })
      expect(await session.interrupt({ clear: true })).toMatchObject([{ text: "later", state: "withdrawn" }])
      expect(await session.inputs.list()).toEqual([])
    })

    test("stop waiting when the signal fires", async () => {
      const gate = createGate()
      await using opened = await open(script, gate.options)
      const session = await opened.tackle.sessions.create()
      await session.send("work")
      await gate.reached
      const leave = new AbortController()
      const waited = codeOf(session.wait({ signal: leave.signal }))
      leave.abort()
      expect(await waited).toBe("aborted")
      gate.open()
      await session.wait()
    })
  })

  describe(`${name}: events`, () => {
    test("replay the changes after any number, in order and once", async () => {
      await using opened = await open(script)
      const session = await opened.tackle.sessions.create()
      const live = session.events({ after: 0 })
      await say(session, "hello")
      const all = await numbers(live)
      expect(all).toEqual(all.toSorted((a, b) => a - b))
      const last = all.at(-1) ?? 0
      for (let after = 0; after < last; after += 1) {
        const seen = await numbers(session.events({ after }), last)
        expect(seen.at(-1)).toBe(last)
        expect(seen[0]).toBeGreaterThan(after)
        expect(seen).toEqual([...new Set(seen)].sort((a, b) => a - b))
      }
    })

    test("start with the next change by default, and end with the signal", async () => {
      await using opened = await open(script)
      const session = await opened.tackle.sessions.create()
      await say(session, "one")
      const leave = new AbortController()
      const events = session.events({ signal: leave.signal })
      await session.send("two")
      expect((await events.next()).value).toMatchObject({ type: "input.updated", input: { text: "two" } })
      await session.wait()
      leave.abort()
      const rest: SessionEvent[] = []
      for await (const event of events) rest.push(event)
      expect((await events.next()).done).toBe(true)
    })

    test("contain streamed text and the end of the run", async () => {
      await using opened = await open(script)
      const session = await opened.tackle.sessions.create()
      const events = session.events()
      await session.send("hello")
      const types = new Set<string>()
      for await (const event of events) {
        types.add(event.type)
        if (event.type === "run.completed") break
      }
      for (const type of ["input.updated", "message.created", "part.updated", "part.delta"])
        expect([...types]).toContain(type)
    })

    test("name the messages of each run's inputs at its end", async () => {
      const gate = createGate()
      await using opened = await open(script, gate.options)
      const session = await opened.tackle.sessions.create()
      const events = session.events()
      await session.send("work")
      await gate.reached
      await session.send("steers")
      await session.send("next run", { delivery: "queue" })
      gate.open()
      const promoted: string[] = []
      const runs: string[][] = []
      for await (const event of events) {
        if (event.type === "input.updated" && event.input.messageID) promoted.push(event.input.messageID)
        if (event.type === "run.completed") runs.push(event.messageIDs)
        if (runs.length === 2) break
      }
      expect(runs).toEqual([promoted.slice(0, 2), promoted.slice(2)])
    })

    test("end with the deletion of the session", async () => {
      await using opened = await open(script)
      const { sessions } = opened.tackle
      const session = await sessions.create({ title: "Old" })
      const events = session.events()
      await sessions.delete(session.id)
      const received: SessionEvent[] = []
      for await (const event of events) received.push(event)
      expect(received).toMatchObject([{ type: "session.deleted", session: { title: "Old" } }])
    })

    test("begin with the text so far for a reader that joins while the model streams", async () => {
      const text = "The first half of the text is sent before the reader joins."
      const call = { name: "wait", arguments: { note: "half of the arguments" } }
      const replies: Script = ({ body: { messages } }) => ({
        ...(JSON.stringify(messages.at(-1)).includes("call") ? { calls: [call] } : { text }),
        pieceSize: 2,
        fault: "hang-mid",
      })
      await using opened = await open(replies, { tools: [createGate().wait] })
      for (const word of ["say", "call"]) {
        const session = await opened.tackle.sessions.create()
        const present = session.events()
        await session.send(word)
        const half = await streamedText(present, (streamed) => streamed.length > 8)
        const late = await streamedText(session.events(), (streamed) => streamed.length >= half.length)
        const replayed = await streamedText(session.events({ after: 0 }), () => true)
        expect([late, replayed].every((streamed) => streamed.startsWith(half))).toBe(true)
        await session.interrupt()
      }
    })

    test("reset a reader that asks for a number from the future", async () => {
      await using opened = await open(script)
      const session = await opened.tackle.sessions.create()
      const events = session.events({ after: 99 })
      const { value } = await events.next()
      expect(value).toEqual({ type: "reset", sessionID: session.id, seq: 1, reason: "unknown" })
      await events.return?.()
    })

    test("end a read that waits when the reader leaves", async () => {
      await using opened = await open(script)
      const session = await opened.tackle.sessions.create()
      const events = session.events()
      const waiting = events.next()
      await events.return?.()
      expect((await waiting).done).toBe(true)
    })

    test("of all sessions reach a subscriber until it unsubscribes", async () => {
      await using opened = await open(script)
      const heard: TackleEvent[] = []
      const ended = Promise.withResolvers<void>()
      const stop = opened.tackle.subscribe((event) => {
        heard.push(event)
        if (event.type === "run.completed") ended.resolve()
      })
      const session = await opened.tackle.sessions.create()
      await session.send("hello")
      await ended.promise
      expect(heard.map(({ sessionID }) => sessionID)).toContain(session.id)
      stop()
      const count = heard.length
      await say(session, "again")
      expect(heard.length).toBe(count)
    })
  })

  describe(`${name}: requests`, () => {
    test("are answered once; a second reply has no effect", async () => {
      const gate = createGate()
      await using opened = await open(script, { tools: gate.options.tools ?? [] })
      const session = await opened.tackle.sessions.create()
      const asked = next(opened.tackle, "permission.asked")
      await session.send("work")
      const { request } = await asked
      expect(await opened.tackle.sessions.status(session.id)).toBe("waiting")
      expect(await opened.tackle.pendingRequests()).toMatchObject([{ id: request.id, permission: "wait" }])
      expect(await opened.tackle.requests(session.id)).toMatchObject([{ type: "permission", id: request.id }])
      expect(await opened.tackle.requests("ses_other")).toEqual([])
      expect(await opened.tackle.pendingRequests(session.id)).toHaveLength(1)
      expect(await opened.tackle.pendingRequests("ses_other")).toEqual([])
      expect(await opened.tackle.reply(request.id, { reply: "once" })).toBe("applied")
      expect(await opened.tackle.reply(request.id, { reply: "reject" })).toBe("already")
      expect(await opened.tackle.reply("per_unknown", { reply: "once" })).toBe("unknown")
      gate.open()
      expect(await session.wait()).toMatchObject({ status: "completed", text: "done", refused: [] })
    })

    test("pass a rejection and its message to the model", async () => {
      const gate = createGate()
      await using opened = await open(script, { tools: gate.options.tools ?? [] })
      const session = await opened.tackle.sessions.create()
      const asked = next(opened.tackle, "permission.asked")
      await session.send("work")
      const { request } = await asked
      await opened.tackle.reply(request.id, { reply: "reject", message: "not on a Monday" })
      await session.wait()
      expect(JSON.stringify(opened.model.requests.at(-1)?.body)).toContain("not on a Monday")
    })

    test("create a grant with `always`, which can be revoked", async () => {
      const gate = createGate()
      await using opened = await open(script, { tools: gate.options.tools ?? [] })
      const session = await opened.tackle.sessions.create()
      const asked = next(opened.tackle, "permission.asked")
      await session.send("work")
      const { request } = await asked
      expect(await opened.tackle.reply(request.id, { reply: "always", scope: "project" })).toBe("applied")
      gate.open()
      await session.wait()
      const grants = await opened.tackle.grants()
      expect(grants).toMatchObject([{ permission: "wait", scope: "project", action: "allow" }])
      await expect(opened.tackle.revoke(["gra_unknown"])).rejects.toThrow(/gra_unknown/)
      await opened.tackle.revoke(grants.map(({ id }) => id))
      expect(await opened.tackle.grants()).toEqual([])
    })

    test("of the model are answered, or dismissed", async () => {
      const question = {
        name: "question",
        arguments: { questions: [{ question: "Which?", options: [{ label: "left" }, { label: "right" }] }] },
      }
      const asks: Script = [{ calls: [question] }, { text: "done" }, { calls: [question] }, { text: "done" }]
      await using opened = await open(asks)
      const { tackle } = opened
      const session = await tackle.sessions.create()
      const asked = next(tackle, "question.asked")
      await session.send("ask")
      const { request } = await asked
      expect(await tackle.questions.pending(session.id)).toMatchObject([{ id: request.id }])
      expect(await tackle.requests()).toMatchObject([{ type: "question", id: request.id }])
      expect(await codeOf((async () => tackle.questions.reply(request.id, []))())).toBe("usage")
      expect(await tackle.questions.reply(request.id, [["left"]])).toBe("applied")
      expect(await tackle.questions.reply(request.id, [["left"]])).toBe("unknown")
      expect(await tackle.questions.reject("que_unknown")).toBe("unknown")
      await session.wait()
      expect(JSON.stringify(opened.model.requests.at(-1)?.body)).toContain("→ left")
      const second = next(tackle, "question.asked")
      await session.send("ask again")
      expect(await tackle.questions.reject((await second).request.id)).toBe("applied")
      await session.wait()
      expect(await tackle.questions.pending()).toEqual([])
    })
  })

  describe(`${name}: the project`, () => {
    test("has agents, commands, models and tools", async () => {
      await using opened = await open(script, { tools: [createGate().wait] })
      const agents = await opened.tackle.agents
      expect(agents.get("plan")).toMatchObject({ name: "plan", mode: "primary" })
      const models = await opened.tackle.models()
      expect(models.map(({ ref }) => `${ref.providerID}/${ref.modelID}`)).toContain("test/m")
      expect((await opened.tackle.model("test/m")).ref).toEqual({ providerID: "test", modelID: "m" })
      await expect(opened.tackle.model("test/n")).rejects.toThrow("test/n is unknown")
      await expect(opened.tackle.model("m")).rejects.toThrow('"m" is not a model name')
      expect(Array.isArray(await opened.tackle.commands())).toBe(true)
      const tools = await opened.tackle.tools({ agent: "build" })
      expect(tools.find(({ id }) => id === "wait")).toMatchObject({
        offered: true,
        parameters: { type: "object" },
      })
    })

    test("finds files by letters of their path, without ignored and denied files", async () => {
      await using opened = await open(script, { permission: { "*": "allow" } })
      const { project, tackle } = opened
      await project.write(".gitignore", "out/\n")
      for (const path of ["src/app.ts", "src/view/map.ts", "out/app.ts", "docs/application.md", ".env"])
        await project.write(path, "")
      expect(await tackle.findFiles("app")).toEqual(["src/app.ts", "docs/application.md"])
      expect(await tackle.findFiles("vmap")).toEqual(["src/view/map.ts"])
      expect(await tackle.findFiles("app", { limit: 1 })).toEqual(["src/app.ts"])
      expect(await tackle.findFiles("")).toContain("src/app.ts")
      expect(await tackle.findFiles("nothing like it")).toEqual([])
      await using denying = await open(script, { permission: { "*": "allow", read: "deny" } })
      await denying.project.write("secret.ts", "")
      expect(await denying.tackle.findFiles("secret")).toEqual([])
    })

    test("calls a command in a sent text, and sends other texts as they are", async () => {
      await using opened = await open(script, {
        commands: { greet: { template: "Greet $ARGUMENTS warmly." } },
      })
      const { tackle } = opened
      const session = await tackle.sessions.create()
      for (const text of ["/greet the crew", "/unknown thing"]) {
        await tackle.send(session.id, text)
        await session.wait()
      }
      const requests = JSON.stringify(opened.model.requests.at(-1)?.body.messages)
      expect(requests).toContain("Greet the crew warmly.")
      expect(requests).toContain("/unknown thing")
      expect(await tackle.send("ses_unknown", "hello")).toBeUndefined()
    })

    test("has MCP servers and their prompts", async () => {
      await using opened = await open(script)
      expect(await opened.tackle.mcpServers()).toEqual([])
      expect(await opened.tackle.mcpPrompts()).toEqual([])
    })

    test("has a project with its directory, branch and sandbox", async () => {
      await using opened = await open(script)
      await opened.project.write(".git/HEAD", "ref: refs/heads/topic/one\n")
      const { directory } = await (await opened.tackle.sessions.create()).info()
      expect(await opened.tackle.project()).toEqual({
        ...{ directory, worktree: expect.any(String), branch: "topic/one" },
        sandbox: expect.objectContaining({ works: expect.any(Boolean) }),
      })
    })

    test("reports the progress of a single call, and ends it when the signal fires", async () => {
      const waiting: Info = tool("wait", async (_, { abort, metadata }) => {
        await metadata({ metadata: { output: "begun" } })
        return new Promise((_, reject) => abort.addEventListener("abort", () => reject(abort.reason)))
      })
      const quick = tool("quick", async () => ({ title: "", output: "done" }))
      await using opened = await open(script, { tools: [waiting, quick], permission: { "*": "allow" } })
      const leave = new AbortController()
      const seen: unknown[] = []
      const call = opened.tackle.callTool({
        ...{ tool: "wait", input: {}, signal: leave.signal },
        onProgress(state) {
          seen.push(state.metadata?.output)
          if (state.metadata?.output === "begun") leave.abort()
        },
      })
      const ended = await call.then(
        ({ state }) => state.status,
        (error: { code: string }) => error.code,
      )
      expect([ended, seen.at(-1)]).toEqual([expect.stringMatching(/^(error|aborted)$/), "begun"])
      const { state } = await opened.tackle.callTool({ tool: "quick", input: {}, onProgress() {} })
      expect(state).toMatchObject({ status: "completed", output: "done" })
      const unknown = codeOf(
        opened.tackle.callTool({ tool: "quick", input: {}, agent: "x", onProgress() {} }),
      )
      expect(await unknown).toMatch(/^(agent\.unknown|usage)$/)
    })

    test("names the call in the permission requests of equal calls", async () => {
      await using opened = await open(script, { permission: { bash: "ask" } })
      const { tackle } = opened
      const asked = new Set<string | undefined>()
      const leave = tackle.subscribe((event) => {
        if (event.type !== "permission.asked") return
        asked.add(event.request.tool?.messageID)
        void tackle.reply(event.request.id, { reply: "reject" })
      })
      const input = { command: "mkdir made", description: "make" }
      const ids = ["msg_first1", "msg_second2"]
      await Promise.all(ids.map((messageID) => tackle.callTool({ tool: "bash", input, messageID })))
      leave()
      expect([...asked].toSorted()).toEqual(ids)
    })

    test("runs a single call through all rules", async () => {
      await using opened = await open(script, { permission: { "*": "allow", write: "deny", edit: "deny" } })
      await opened.project.write("a.txt", "good day\n")
      const read = await opened.tackle.callTool({ tool: "read", input: { filePath: "a.txt" } })
      expect(read.state).toMatchObject({ status: "completed", output: expect.stringContaining("good day") })
      const input = { filePath: "b.txt", content: "" }
      const refused = await opened.tackle.callTool({ tool: "write", input })
      expect(refused.state).toMatchObject({
        status: "error",
        error: expect.stringContaining("the permission rules deny it"),
      })
    })
  })
}

/** A model that calls `wait` if the user's last text is "work", and otherwise repeats the last text. */
const script: Script = ({ body: { messages } }) => {
  const last = messages.at(-1)
  const text = typeof last?.content === "string" ? last.content : JSON.stringify(last?.content)
  if (last?.role === "user" && text.includes("work")) return { calls: [{ name: "wait", arguments: {} }] }
  return { text: last?.role === "user" ? `heard ${text}` : "done" }
}

/** A tool that waits until the test opens it. */
function createGate() {
  const reached = Promise.withResolvers<void>()
  const opened = Promise.withResolvers<void>()
  const wait = tool("wait", async (_, { abort }) => {
    reached.resolve()
    await orAbort(opened.promise, abort)
    return { title: "", output: "waited" }
  })
  const options: Wanted = { tools: [wait], permission: { "*": "allow" } }
  return { wait, options, reached: reached.promise, open: () => opened.resolve() }
}

async function say(session: SessionApi, text: string): Promise<void> {
  await session.send(text)
  await session.wait()
}

/** Returns the user's texts and the model's texts and calls of a session, in order. */
async function talk(session: SessionApi | undefined): Promise<string[]> {
  return ((await session?.messages()) ?? []).flatMap(({ message, parts }) =>
    parts.flatMap((part) => {
      if (part.type === "text") return [`${message.role === "user" ? "user" : "model"}: ${part.text}`]
      return part.type === "tool" ? [`call: ${part.tool}`] : []
    }),
  )
}

/** Returns the text of the first streamed part or call with text, as soon as it is `enough`. */
async function streamedText(
  events: AsyncIterable<SessionEvent>,
  enough: (text: string) => boolean,
): Promise<string> {
  const texts = new Map<string, string>()
  for await (const event of events) {
    if (event.type === "part.updated") {
      const { part } = event
      if (part.type === "text" && part.time) texts.set(part.id, part.text)
      if (part.type === "tool" && part.state.status === "pending") texts.set(part.id, part.state.raw)
    } else if (event.type === "part.delta") {
      texts.set(event.partID, (texts.get(event.partID) ?? "") + event.delta)
    }
    const text = [...texts.values()].join("")
    if (text !== "" && enough(text)) return text
  }
  throw new Error("The stream ended before the text.")
}

/** Returns the sequence numbers up to `last`, or to the end of the run. */
async function numbers(
  events: AsyncIterable<SessionEvent>,
  last = Number.POSITIVE_INFINITY,
): Promise<number[]> {
  const seen: number[] = []
  for await (const event of events) {
    if (event.seq !== undefined) seen.push(event.seq)
    if ((event.seq ?? 0) >= last || (event.type === "run.completed" && last === Number.POSITIVE_INFINITY))
      break
  }
  return seen
}

/** Resolves with the next event of the type. */
function next<T extends TackleEvent["type"]>(tackle: TackleApi, type: T) {
  const { promise, resolve } = Promise.withResolvers<Extract<TackleEvent, { type: T }>>()
  const stop = tackle.subscribe((event) => {
    if (event.type === type) resolve(event as Extract<TackleEvent, { type: T }>)
  })
  return promise.finally(stop)
}

/** Returns the code of the Tackle error with which the promise rejects. */
async function codeOf(work: Promise<unknown>): Promise<string> {
  const error = await work.then(
    () => undefined,
    (error: unknown) => error,
  )
  if (TackleError.isInstance(error)) return error.code
  throw new Error("The promise did not reject with an error of Tackle.", { cause: error })
}
