import fc from "fast-check"
import { expect, test } from "vitest"
import { type Archive, ArchiveError, sanitizeArchive } from "../../src/session/archive.ts"
import { archiveText, exportSession, importSession } from "../../src/session/transfer-session.ts"
import { createMemoryStore } from "../../src/store/memory.ts"
import type { Change, Store } from "../../src/store/store.ts"
import { canonicalJson, parseJson } from "../../src/util/json.ts"
import { runs } from "../runs.ts"
import { anySession } from "./archive-records.ts"

const place = { directory: "/w", worktree: "/w" }

async function storeOf(changes: readonly Change[]): Promise<Store> {
  const store = createMemoryStore()
  await store.commit(changes)
  return store
}

async function exported(store: Store, id = "ses_0"): Promise<Archive> {
  return (await exportSession(store, id)) ?? expect.fail(`no session ${id}`)
}

async function textOf(store: Store, sanitize = false): Promise<string> {
  const pieces: string[] = []
  for await (const piece of (await archiveText(store, "ses_0", { sanitize })) ?? []) pieces.push(piece)
  return pieces.join("")
}

/** Removes what an import drops: file changes of others cannot be undone here. */
function withoutPatches(archive: Archive): Archive {
  const bare = <T extends Pick<Archive, "messages">>(record: T): T => ({
    ...record,
    messages: record.messages.map(({ message, parts }) => ({
      message,
      parts: parts.filter(({ type }) => type !== "patch"),
    })),
  })
  return { ...bare(archive), children: archive.children.map(bare) }
}

test("imports any exported session completely, and a copy with new ids", async () => {
  await fc.assert(
    fc.asyncProperty(anySession, async (changes) => {
      const source = await storeOf(changes)
      const archive = await exported(source)
      const given: unknown = JSON.parse(await textOf(source))
      expect(given).toEqual(archive)

      const target = createMemoryStore()
      await importSession(target, given, place)
      expect(await exported(target)).toEqual(withoutPatches(archive))
      // An imported archive exports to itself.
      const again = createMemoryStore()
      await importSession(again, JSON.parse(await textOf(target)), place)
      expect(await exported(again)).toEqual(await exported(target))

      const { id } = await importSession(target, given, { ...place, copy: true })
      const anonymous = (value: Archive) => canonicalJson(value).replaceAll(/\b(ses|msg|prt)_\w+/g, "$1")
      expect(anonymous(await exported(target, id))).toBe(anonymous(withoutPatches(archive)))
    }),
    { numRuns: runs(150) },
  )
})

test("refuses a value of the wrong type anywhere, names its location and stores nothing", async () => {
  await fc.assert(
    fc.asyncProperty(anySession, fc.nat(), async (changes, seed) => {
      const archive = await exported(await storeOf(changes))
      const paths = leavesOf(archive)
      const path = paths[seed % paths.length] ?? expect.fail("an archive is not empty")
      const target = createMemoryStore()
      const outcome = await importSession(target, withValue(archive, path, [["no", "such"]]), place).catch(
        (error: unknown) => error,
      )
      expect(outcome).toBeInstanceOf(ArchiveError)
      expect(await target.sessions({ limit: 9 })).toEqual([])
      // Another format is not an archive at all.
      if (path[0] === "format") {
        expect(String(outcome)).toContain('"format"')
        return
      }
      // A value of the wrong kind is reported as a whole.
      const named =
        String(outcome)
          .match(/ at (\S+):/)?.[1]
          ?.split(".") ?? []
      expect(path.slice(0, named.length)).toEqual(named)
      expect(named.length).toBeGreaterThanOrEqual(Math.min(path.length, 1))
    }),
    { numRuns: runs(300) },
  )
})

test.each<[string, string]>([
  ["session.id", "../../precious"],
  ["session.id", "ses_../x"],
  ["session.id", "ses_a/b"],
  ["messages.0.message.id", "msg_../x"],
  ["messages.0.message.sessionID", "ses_9"],
  ["messages.0.parts.0.id", "prt_/etc"],
  ["messages.0.parts.0.messageID", "msg_9"],
  ["messages.1.message.parentID", "msg_9"],
  ["children.0.session.id", "ses_0"],
  ["children.0.session.parentID", "ses_9"],
  ["children.0.session.id", ".."],
])("%s may not be %s", async (where, value) => {
  const message = { agent: "a", model: { providerID: "p", modelID: "m" } }
  const session = { title: "", ...place, agent: "a", time: { created: 1, updated: 1 } }
  const archive = {
    ...{ format: "tackle.session", version: 1, session: { ...session, id: "ses_0" }, todos: [] },
    messages: [
      {
        message: { ...message, id: "msg_1", sessionID: "ses_0", role: "user", time: { created: 1 } },
        parts: [{ id: "prt_1", sessionID: "ses_0", messageID: "msg_1", type: "text", text: "x" }],
      },
      {
        message: {
          ...{ ...message, id: "msg_2", sessionID: "ses_0", role: "assistant", parentID: "msg_1" },
          ...{ time: { created: 1 }, path: { cwd: "/", root: "/" }, cost: 0 },
          tokens: { input: 0, output: 0, reasoning: 0, cache: { read: 0, write: 0 } },
        },
        parts: [],
      },
    ],
    children: [{ session: { ...session, id: "ses_1", parentID: "ses_0" }, messages: [], todos: [] }],
  }
  await importSession(createMemoryStore(), archive, place)
  const broken = withValue(archive, where.split("."), value)
  await expect(importSession(createMemoryStore(), broken, place)).rejects.toThrow(` at ${where}: `)
})

test("refuses a text that is cut anywhere", async () => {
  const [changes = []] = fc.sample(anySession, { numRuns: 1, seed: 7 })
  const long: Change = {
    kind: "part",
    part: {
      id: "prt_long",
      sessionID: "ses_0",
      messageID: "msg_ses_0_0",
      type: "text",
      text: "words ".repeat(5_000),
    },
  }
  const text = await textOf(await storeOf([...changes, long]))
  expect(text.length).toBeGreaterThan(30_000)
  for (let end = 0; end < text.trimEnd().length; end += end < 2_000 ? 7 : 1000)
    expect(parseJson(text.slice(0, end)).ok).toBe(false)
})

/** Paths of texts and numbers with a fixed type. Values from a model or tool may be anything. */
function leavesOf(value: unknown, path: string[] = []): string[][] {
  if (typeof value !== "object" || value === null) return [path]
  return Object.entries(value).flatMap(([key, inner]) => {
    if (["input", "metadata"].includes(key) && typeof inner === "object") return []
    return leavesOf(inner, [...path, key])
  })
}

function withValue(value: unknown, [key, ...rest]: string[], put: unknown): unknown {
  if (key === undefined) return put
  if (Array.isArray(value))
    return value.map((inner, index) => (String(index) === key ? withValue(inner, rest, put) : inner))
  return { ...(value as object), [key]: withValue((value as Record<string, unknown>)[key], rest, put) }
}

const secrets = ["/home/me/plans", "sk-live 51H", "hunter2 is it", "C:\\me", "me@example.com", "line\nline"]

test("removes planted text anywhere from a sanitized export, which can be imported", async () => {
  await fc.assert(
    fc.asyncProperty(anySession, async (changes) => {
      const archive = await exported(await storeOf(changes))
      let count = 0
      const secret = () => {
        count += 1
        return `${secrets[count % secrets.length]}${count}`
      }
      const planted = plant(archive, secret) as Archive
      const target = createMemoryStore()
      await importSession(target, planted, place)
      const text = await textOf(target, true)
      for (const told of [
        "/home/me",
        "sk-live",
        "hunter2",
        "C:\\\\me",
        "example.com",
        "line",
        '"/w"',
        "8675309",
      ])
        expect(text.includes(told), told).toBe(false)
      expect(JSON.parse(text)).toEqual(sanitizeArchive(await exported(target)))
      const clean = await importSession(createMemoryStore(), JSON.parse(text), place)
      expect(clean.id).toBe("ses_0")
    }),
    { numRuns: runs(150) },
  )
})

/** Keywords of the schema, and values that have to match each other. */
const fixed = new Set([
  "id",
  "sessionID",
  "messageID",
  "parentID",
  "type",
  "role",
  "status",
  "reason",
  "priority",
])

/** Replaces every free text by a secret, and also keys and numbers below free values. */
function plant(value: unknown, secret: () => string, key = "", isFree = false): unknown {
  if (typeof value === "string") {
    return (fixed.has(key) && !isFree) || ["format", "directory", "worktree"].includes(key) ? value : secret()
  }
  if (typeof value === "number") return isFree ? 8675309 : value
  if (Array.isArray(value)) return value.map((inner) => plant(inner, secret, key, isFree))
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => {
      const below = isFree || ((name === "input" || name === "metadata") && typeof inner === "object")
      return [isFree ? secret() : name, plant(inner, secret, name, below)]
    }),
  )
}
