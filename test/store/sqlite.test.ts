import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { afterEach, beforeEach, describe, expect, test } from "vitest"
import { applicationID, migrations } from "../../src/store/migrations.ts"
import { openReadOnlySqliteStore, openSqliteStore } from "../../src/store/sqlite.ts"
import { StoreError, StoreRemovedError } from "../../src/store/store.ts"
import { processScript } from "../process-scripts.ts"
import { testControl } from "../suites/control.ts"
import { type LeasePlace, testLeases } from "../suites/leases.ts"
import { aMessage, aPart, aSession } from "../suites/records.ts"
import { testStore } from "../suites/store.ts"

let directory: string
let path: string

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "tackle-store-"))
  path = join(directory, "deep", "er", "tackle.db")
})
afterEach(() => {
  rmSync(directory, { recursive: true, force: true })
})

testStore("sqlite", () => openSqliteStore(path))

testLeases("sqlite", openPlace)
testControl("sqlite", openPlace)

async function openPlace(): Promise<LeasePlace> {
  const stopped = new Set<string>()
  const open = () => openSqliteStore(path, { isAlive: ({ id }) => !stopped.has(id) })
  const stores = [await open(), await open(), await open()] as const
  return {
    stores,
    stop: async ({ id }) => void stopped.add(id),
    start: ({ id }) => void stopped.delete(id),
    async close() {
      for (const store of stores) await store.close()
    },
  }
}

async function failure(open: Promise<unknown>): Promise<string> {
  const error = await open.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  if (!(error instanceof StoreError)) throw new Error("expected a StoreError", { cause: error })
  return error.message
}

describe("the file", () => {
  test("is created with its directories, readable only by its owner", async () => {
    const store = await openSqliteStore(path)
    await store.commit([{ kind: "session", session: aSession("ses_1") }])
    const modes = readdirSync(join(directory, "deep/er")).map(
      (name) => statSync(join(directory, "deep/er", name)).mode & 0o777,
    )
    expect(modes.length).toBeGreaterThan(1)
    expect(new Set(modes)).toEqual(new Set([0o600]))
    await store.close()
  })

  test.each([
    ["new", ""],
    ["made before there was a way to", "PRAGMA auto_vacuum = NONE; VACUUM"],
  ])("returns the space of a deleted session: a database that is %s", async (_, before) => {
    await (await openSqliteStore(path)).close()
    const database = new DatabaseSync(path)
    database.exec(before)
    database.close()
    const empty = statSync(path).size

    const store = await openSqliteStore(path)
    await store.commit([
      { kind: "session", session: aSession("ses_1") },
      { kind: "session", session: aSession("ses_2") },
      { kind: "message", message: aMessage("msg_1", "ses_1") },
    ])
    for (let part = 0; part < 100; part += 1)
      await store.commit([{ kind: "part", part: aPart(`prt_${part}`, "msg_1", "ses_1", "x".repeat(10_000)) }])
    await store.deleteSession("ses_1")
    await store.reclaim()
    // One page may be taken for the map of pages.
    expect(statSync(path).size).toBeLessThanOrEqual(empty + 4096)
    expect(await store.session("ses_2")).toBeDefined()
    await store.close()
  })

  test("keeps commits for the next process", async () => {
    const first = await openSqliteStore(path)
    await first.commit([{ kind: "session", session: aSession("ses_1") }])
    await first.close()
    const second = await openSqliteStore(path)
    expect(await second.session("ses_1")).toEqual(aSession("ses_1"))
    await second.close()
  })

  test("uses an index for every read of a session", async () => {
    await (await openSqliteStore(path)).close()
    const database = new DatabaseSync(path)
    const plan = (query: string) =>
      database
        .prepare(`EXPLAIN QUERY PLAN ${query}`)
        .all()
        .map((row) => String(row.detail))
        .join("; ")
    expect(
      plan(
        "SELECT data FROM parts WHERE session_id = 1 AND message_id BETWEEN 1 AND 2 ORDER BY message_id, id",
      ),
    ).toMatch(/^SEARCH parts USING PRIMARY KEY [^;]*$/)
    expect(plan("SELECT data FROM messages WHERE session_id = 1 AND id > 1 ORDER BY id DESC")).toMatch(
      /^SEARCH messages USING PRIMARY KEY [^;]*$/,
    )
    expect(plan("SELECT data FROM sessions WHERE worktree = 1 ORDER BY updated DESC, id DESC")).toMatch(
      /^SEARCH sessions USING INDEX sessions_by_worktree [^;]*$/,
    )
    database.close()
  })
})

test("migrates a database of the first version and keeps its data", async () => {
  mkdirSync(join(directory, "deep/er"), { recursive: true })
  const database = new DatabaseSync(path)
  database.exec(migrations[0] ?? "")
  database.exec(`PRAGMA application_id = ${applicationID}; PRAGMA user_version = 1`)
  const session = aSession("ses_1")
  const message = aMessage("msg_1", "ses_1")
  const part = aPart("prt_1", "msg_1", "ses_1")
  const put = (table: string, columns: string, ...values: (string | number | null)[]) =>
    database
      .prepare(`INSERT INTO ${table} (${columns}) VALUES (${values.map(() => "?").join()})`)
      .run(...values)
  put("sessions", "id, worktree, updated, data", "ses_1", session.worktree, 1, JSON.stringify(session))
  put("messages", "id, session_id, data", "msg_1", "ses_1", JSON.stringify(message))
  put("parts", "id, session_id, message_id, data", "prt_1", "ses_1", "msg_1", JSON.stringify(part))
  database.close()

  const store = await openSqliteStore(path)
  expect(await store.messages("ses_1")).toEqual([{ message, parts: [part] }])
  await store.commit([{ kind: "part", part: aPart("prt_2", "msg_1", "ses_1") }])
  expect((await store.messages("ses_1"))[0]?.parts).toHaveLength(2)
  expect(await store.deleteSession("ses_1")).toBe(true)
  expect(await store.messages("ses_1")).toEqual([])
  await store.close()
})

describe("an unusable file stays unchanged", () => {
  beforeEach(() => mkdirSync(join(directory, "deep/er"), { recursive: true }))

  test("not a database", async () => {
    writeFileSync(path, "not a database, but long enough to be taken for one".repeat(50))
    const before = readFileSync(path)
    const message = await failure(openSqliteStore(path))
    expect(message).toContain(path)
    expect(message).toMatch(/is not a SQLite database.*Move it to another directory/)
    expect(readFileSync(path)).toEqual(before)
  })

  test("damaged", async () => {
    const store = await openSqliteStore(path)
    await store.commit([{ kind: "session", session: aSession("ses_1") }])
    await store.close()
    const bytes = readFileSync(path)
    bytes.fill(0xff, 100)
    writeFileSync(path, bytes)
    const message = await failure(openSqliteStore(path))
    expect(message).toContain(path)
    expect(message).toMatch(/damaged|lacks/)
    expect(message).toContain("Move it to another directory")
    expect(readFileSync(path)).toEqual(bytes)
  })

  test("written by a newer Tackle", async () => {
    await (await openSqliteStore(path)).close()
    const database = new DatabaseSync(path)
    database.exec("PRAGMA user_version = 999; CREATE TABLE future (id)")
    database.close()
    const before = readFileSync(path)
    const message = await failure(openSqliteStore(path))
    expect(message).toContain(path)
    expect(message).toContain("999")
    expect(message).toContain(`up to version ${migrations.length}`)
    expect(message).toMatch(/Update Tackle/)
    expect(await failure(openReadOnlySqliteStore(path))).toBe(message)
    expect(readFileSync(path)).toEqual(before)
  })

  test("another program's database", async () => {
    const database = new DatabaseSync(path)
    database.exec("CREATE TABLE cookies (id)")
    database.close()
    const before = readFileSync(path)
    expect(await failure(openSqliteStore(path))).toMatch(/another program/)
    expect(await failure(openReadOnlySqliteStore(path))).toMatch(/another program/)
    expect(readFileSync(path)).toEqual(before)
  })

  test("an older database that cannot be migrated, because it is read-only", async () => {
    await (await openSqliteStore(path)).close()
    const database = new DatabaseSync(path)
    database.exec(`PRAGMA user_version = ${migrations.length - 1}`)
    database.close()
    expect(await failure(openReadOnlySqliteStore(path))).toMatch(/older version.*Copy its directory/)
  })

  test("an empty database that is read-only", async () => {
    writeFileSync(path, "")
    expect(await failure(openReadOnlySqliteStore(path))).toMatch(/is empty\. Make .* writable/)
  })

  test("a directory instead of a file", async () => {
    mkdirSync(path)
    expect(await failure(openSqliteStore(path))).toContain(path)
  })

  test.skipIf(process.getuid?.() === 0)("a directory that is not writable", async () => {
    chmodSync(join(directory, "deep/er"), 0o500)
    const message = await failure(openSqliteStore(path))
    chmodSync(join(directory, "deep/er"), 0o700)
    expect(message).toMatch(/cannot be written \(EACCES\).*TACKLE_DATA_DIR/)
  })

  test("a directory that cannot be created", async () => {
    writeFileSync(join(directory, "file"), "")
    const message = await failure(openSqliteStore(join(directory, "file", "tackle.db")))
    expect(message).toMatch(/cannot be written \((ENOTDIR|EEXIST)\).*TACKLE_DATA_DIR/)
  })
})

describe("a database that is removed, moved or replaced while it is open", () => {
  const ways: [string, () => void, string][] = [
    ["removed", () => rmSync(path), "removed or moved"],
    [
      "removed with its directory",
      () => rmSync(join(directory, "deep"), { recursive: true }),
      "removed or moved",
    ],
    [
      "moved with its directory",
      () => renameSync(join(directory, "deep"), join(directory, "x")),
      "removed or moved",
    ],
    ["replaced", replace, "replaced by another file"],
    ["without its log", () => rmSync(`${path}-wal`), "tackle.db-wal of the database was removed or moved"],
  ]

  function replace(): void {
    cpSync(path, `${path}.copy`)
    renameSync(`${path}.copy`, path)
  }

  test.each(ways)("refuses every write: %s", async (_, change, what) => {
    const holder = { id: "eng_1", pid: 1 }
    const store = await openSqliteStore(path, { isAlive: () => false })
    await store.commit([{ kind: "session", session: aSession("ses_1") }])
    const taken = await store.lease("ses_1", holder)
    if (!taken.isHeld) throw new Error("the session is leased")
    change()
    const writes = [
      () => store.commit([{ kind: "session", session: aSession("ses_2") }]),
      () => store.commit([{ kind: "session", session: aSession("ses_2") }], { durable: true }),
      () => store.deleteSession("ses_1"),
      () => store.lease("ses_1", holder),
      () => store.release(taken.lease),
      () => store.recover(() => []),
      () => store.reclaim(),
    ]
    for (const write of writes) {
      const error: unknown = await write().catch((reason: unknown) => reason)
      expect(error).toBeInstanceOf(StoreRemovedError)
      expect(error).toMatchObject({ code: "store.removed", message: expect.stringContaining(what) })
      expect(String(error)).toContain(path)
    }
    // Reads continue, and nothing was written to the old file.
    expect((await store.sessions()).map(({ id }) => id)).toEqual(["ses_1"])
    await store.close()
  })

  test("accepts writes again after the directory is moved back", async () => {
    const store = await openSqliteStore(path)
    const [from, to] = [join(directory, "deep"), join(directory, "x")]
    renameSync(from, to)
    await expect(store.commit([{ kind: "session", session: aSession("ses_1") }])).rejects.toThrow(
      StoreRemovedError,
    )
    renameSync(to, from)
    await store.commit([{ kind: "session", session: aSession("ses_1") }])
    await store.close()
  })
})

describe("several processes", () => {
  const children: ChildProcess[] = []
  afterEach(() => {
    for (const child of children.splice(0)) child.kill("SIGKILL")
  })

  function writer(name: string, commits: number): ChildProcess {
    const child = spawn(process.execPath, [processScript("test/store/writer"), path, name, String(commits)], {
      stdio: ["ignore", "pipe", "inherit"],
    })
    children.push(child)
    return child
  }

  test("keeps the commits of four concurrent writers", async () => {
    const names = ["a", "b", "c", "d"]
    const exits = names.map(async (name) => {
      const child = writer(name, 200)
      child.stdout?.resume()
      return await once(child, "exit")
    })
    expect((await Promise.all(exits)).map(([code]) => code)).toEqual([0, 0, 0, 0])
    const store = await openSqliteStore(path)
    for (const name of names) {
      const [only] = await store.messages(`ses_${name}`)
      expect(only?.parts).toHaveLength(200)
    }
    await store.close()
  })

  test("keeps commits after kill -9", async () => {
    const child = writer("k", 1_000_000)
    let said = ""
    child.stdout?.setEncoding("utf8")
    for await (const text of child.stdout ?? []) {
      said += text
      if (said.length > 2000 && !child.killed) child.kill("SIGKILL")
    }
    const announced = said.split("\n").slice(0, -1)
    const store = await openSqliteStore(path)
    const [only] = await store.messages("ses_k")
    const stored = new Set(only?.parts.map((part) => part.id))
    expect(announced.length).toBeGreaterThan(50)
    expect(announced.filter((id) => !stored.has(id))).toEqual([])
    await store.close()
  })

  test("reports a lock that is held too long, and works afterwards", async () => {
    const store = await openSqliteStore(path, { busyTimeoutMs: 20 })
    const other = new DatabaseSync(path)
    other.exec("BEGIN IMMEDIATE")
    const change = { kind: "session", session: aSession("ses_1") } as const
    expect(await failure(store.commit([change]))).toMatch(/locked by another process/)
    expect(await failure(store.commit([change, change]))).toMatch(/locked by another process/)
    expect(await store.session("ses_1")).toBeUndefined()
    other.exec("ROLLBACK")
    other.close()
    await store.commit([change])
    expect(await store.session("ses_1")).toBeDefined()
    await store.close()
  })

  test.skipIf(process.platform !== "linux")("keeps its locks when the process opens it again", async () => {
    const first = await openSqliteStore(path)
    const locks = () =>
      readFileSync("/proc/locks", "utf8")
        .split("\n")
        .filter((line) => line.includes(` ${process.pid} `) && line.includes(`:${statSync(path).ino} `))
    expect(locks()).toHaveLength(1)
    const second = await openSqliteStore(path)
    expect(locks()).toHaveLength(1)
    await first.close()
    await second.close()
  })

  test("reads commits of another connection", async () => {
    const [one, two] = [await openSqliteStore(path), await openSqliteStore(path)]
    await one.commit([
      { kind: "session", session: aSession("ses_1") },
      { kind: "message", message: aMessage("msg_1", "ses_1") },
      { kind: "part", part: aPart("prt_1", "msg_1", "ses_1") },
    ])
    expect(await two.messages("ses_1")).toEqual(await one.messages("ses_1"))
    await one.close()
    await two.close()
  })
})
