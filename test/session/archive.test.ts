import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import type { Part } from "../../src/schema/part.ts"
import { type Archive, ArchiveError, sanitizeArchive } from "../../src/session/archive.ts"
import { exportSession, forkSession, importSession } from "../../src/session/transfer-session.ts"
import { createMemoryStore } from "../../src/store/memory.ts"
import { openSqliteStore } from "../../src/store/sqlite.ts"
import type { Store } from "../../src/store/store.ts"
import { runs } from "../runs.ts"
import { aMessage, aPart, aSession } from "../suites/records.ts"

const place = { directory: "/w", worktree: "/w" }

function toolPart(id: string, messageID: string, sessionID: string, output: string): Part {
  return {
    ...{ id, messageID, sessionID, type: "tool", callID: "call_1", tool: "task" },
    state: {
      status: "completed",
      ...{
        input: { filePath: "/home/me/secret.txt", token: "sk-abcdefgh", id: "AKIA1234" },
        title: "t",
        output,
      },
      metadata: { diff: "-old\n+new", name: "hunter2hunter2" },
      time: { start: 1, end: 2 },
    },
  }
}

/** Stores a session of two turns; the first one called a subagent. */
async function fill(store: Store): Promise<void> {
  const answer = (id: string, parentID: string) => ({
    ...{ ...aMessage(id, "ses_1"), role: "assistant" as const, parentID, path: { cwd: "/w", root: "/w" } },
    ...{ cost: 0, tokens: { input: 1, output: 2, reasoning: 0, cache: { read: 0, write: 0 } } },
  })
  await store.commit([
    { kind: "session", session: aSession("ses_1", { title: "the whole of /home/me" }) },
    { kind: "message", message: aMessage("msg_1", "ses_1") },
    { kind: "part", part: aPart("prt_1", "msg_1", "ses_1", "password: hunter2") },
    { kind: "message", message: answer("msg_2", "msg_1") },
    { kind: "part", part: toolPart("prt_2", "msg_2", "ses_1", "task_id: ses_2 did it") },
    { kind: "message", message: aMessage("msg_3", "ses_1") },
    { kind: "part", part: aPart("prt_3", "msg_3", "ses_1", "again") },
    { kind: "todos", sessionID: "ses_1", todos: [{ content: "buy", status: "pending", priority: "high" }] },
    { kind: "session", session: aSession("ses_2", { parentID: "ses_1" }) },
    { kind: "message", message: aMessage("msg_4", "ses_2") },
    { kind: "part", part: aPart("prt_4", "msg_4", "ses_2") },
    { kind: "session", session: aSession("ses_3", { parentID: "ses_2" }) },
  ])
}

async function exported(store: Store, id = "ses_1"): Promise<Archive> {
  const archive = await exportSession(store, id)
  if (!archive) throw new Error(`no session ${id}`)
  return archive
}

async function sqlite(): Promise<Store & AsyncDisposable> {
  const directory = await mkdtemp(join(tmpdir(), "tackle-archive-"))
  const store = await openSqliteStore(join(directory, "t.db"))
  return Object.assign(store, {
    async [Symbol.asyncDispose]() {
      await store.close()
      await rm(directory, { recursive: true })
    },
  })
}

async function memory(): Promise<Store & AsyncDisposable> {
  const store = createMemoryStore()
  return Object.assign(store, { [Symbol.asyncDispose]: () => store.close() })
}

describe.each([
  ["memory", memory],
  ["sqlite", sqlite],
])("restores a deleted session from its export", (_, open) => {
  test("refuses an existing id, and imports a copy with new ids everywhere", async () => {
    await using store = await open()
    await fill(store)
    const archive = await exported(store)
    expect(archive.children.map(({ session }) => session.id)).toEqual(["ses_2", "ses_3"])
    await store.deleteSession("ses_1")
    await importSession(store, JSON.parse(JSON.stringify(archive)), place)
    expect(await exported(store)).toEqual(archive)
  })

  test("forks the history up to the end of a turn and leaves the original unchanged", async () => {
    await using store = await open()
    await fill(store)
    const archive = await exported(store)
    await expect(importSession(store, archive, place)).rejects.toThrow(/Session ses_1 already exists.*--copy/)
    const copy = await exported(store, (await importSession(store, archive, { ...place, copy: true })).id)
    expect(JSON.stringify(copy)).not.toMatch(/"(?:ses|msg|prt)_\d"|ses_2/)
    const [child] = copy.children
    expect(child?.session.parentID).toBe(copy.session.id)
    expect(JSON.stringify(copy.messages)).toContain(`task_id: ${child?.session.id} did it`)
    expect(await exported(store)).toEqual(archive)
  })

  test("refuses any broken archive with a reason and stores nothing", async () => {
    await using store = await open()
    await fill(store)
    const before = await exported(store)
    const texts = (archive: Archive) =>
      archive.messages.flatMap(({ parts }) =>
        parts.map((part) => (part.type === "text" ? part.text : part.type)),
      )
    const whole = await forkSession(store, "ses_1")
    const part = await forkSession(store, "ses_1", "msg_1")
    expect(texts(await exported(store, whole?.id))).toEqual(["password: hunter2", "tool", "again"])
    expect(texts(await exported(store, part?.id))).toEqual(["password: hunter2", "tool"])
    expect(part).toMatchObject({ title: "the whole of /home/me (fork)" })
    expect(await exported(store)).toEqual(before)
    const running = { status: "running" as const, input: {}, time: { start: 1 } }
    const call = { id: "prt_9", sessionID: "ses_1", messageID: "msg_1", type: "tool" as const }
    await store.commit([{ kind: "part", part: { ...call, callID: "c", tool: "bash", state: running } }])
    const early = await exported(store, (await forkSession(store, "ses_1"))?.id)
    expect(JSON.stringify(early)).toContain("This session was copied while the call was running.")
    expect(JSON.stringify(early)).not.toContain('"status":"running"')
    await expect(forkSession(store, "ses_1", "msg_9")).rejects.toThrow(/Session ses_1 has no message msg_9/)
    expect(await forkSession(store, "ses_none")).toBeUndefined()
  })
})

test("keeps the shape of a session but none of its content in a sanitized archive", async () => {
  const source = createMemoryStore()
  await fill(source)
  const archive: unknown = JSON.parse(JSON.stringify(await exported(source)))
  const paths = leafPaths(archive)
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...paths),
      fc.constantFrom<unknown>(null, 7, "", "ses_9", [], {}, undefined),
      async (path, value) => {
        const store = createMemoryStore()
        const broken = withValue(archive, path, value)
        const outcome = await importSession(store, broken, place).catch((error: unknown) => error)
        if (outcome instanceof Error) {
          expect(outcome).toBeInstanceOf(ArchiveError)
          expect(await store.sessions({ limit: 100 })).toEqual([])
        } else expect((await exported(store, (outcome as { id: string }).id)).format).toBe("tackle.session")
      },
    ),
    { numRuns: runs(500) },
  )
})

test.each<[string, (archive: Archive) => unknown, RegExp]>([
  ["another format", (archive) => ({ ...archive, format: "x" }), /expected "format"/],
  ["a newer version", (archive) => ({ ...archive, version: 2 }), /at version/],
  ["an unknown key", (archive) => ({ ...archive, more: 1 }), /more/],
  [
    "messages out of order",
    (archive) => ({ ...archive, messages: archive.messages.toReversed() }),
    /does not sort after|comes before/,
  ],
  [
    "an answer to nothing",
    (archive) => ({ ...archive, messages: archive.messages.slice(1) }),
    /does not come after the message that it answers/,
  ],
  [
    "a child before its parent",
    (archive) => ({ ...archive, children: archive.children.toReversed() }),
    /ses_3.*parent/,
  ],
  [
    "a child twice",
    (archive) => ({ ...archive, children: [archive.children[0], archive.children[0]] }),
    /two sessions with the id/,
  ],
  ["a text", () => "hello", /not a session archive.*expected an object, got a string/],
  ["an array", () => [], /got an array/],
  ["null", () => null, /got null/],
  ["other JSON", () => ({ name: "shop", version: 1 }), /an object with "name", "version"/],
  ["another program's", () => ({ info: {}, messages: [] }), /an OpenCode export/],
])("%s is refused", async (_, change, reason) => {
  const store = createMemoryStore()
  await fill(store)
  const archive = change(await exported(store))
  await expect(importSession(createMemoryStore(), archive, place)).rejects.toThrow(reason)
})

test("a sanitized archive contains the events but no texts of a session, and can be imported", async () => {
  const store = createMemoryStore()
  await fill(store)
  const clean = sanitizeArchive(await exported(store))
  const text = JSON.stringify(clean)
  for (const told of ["hunter2", "secret.txt", "/home/me", "sk-abc", "AKIA", "+new", "did it", "buy", '"/w"'])
    expect(text).not.toContain(told)
  expect(clean.messages[1]?.parts[0]).toMatchObject({
    ...{ type: "tool", tool: "task", callID: "call_1" },
    state: { status: "completed", output: "[21 characters]", time: { start: 1, end: 2 } },
  })
  expect((await importSession(createMemoryStore(), clean, place)).id).toBe("ses_1")
})

function leafPaths(value: unknown, path: string[] = []): string[][] {
  if (typeof value !== "object" || value === null) return [path]
  return [path, ...Object.entries(value).flatMap(([key, inner]) => leafPaths(inner, [...path, key]))]
}

function withValue(value: unknown, [key, ...rest]: string[], put: unknown): unknown {
  if (key === undefined) return put
  if (Array.isArray(value))
    return value.map((inner, index) => (String(index) === key ? withValue(inner, rest, put) : inner))
  return { ...(value as object), [key]: withValue((value as Record<string, unknown>)[key], rest, put) }
}
