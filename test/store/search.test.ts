import { spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import fc from "fast-check"
import { describe, expect, onTestFinished, test } from "vitest"
import { createMemoryStore } from "../../src/store/memory.ts"
import { excerptOf } from "../../src/store/search.ts"
import { openReadOnlySqliteStore, openSqliteStore } from "../../src/store/sqlite.ts"
import type { Change } from "../../src/store/store.ts"
import { runs } from "../runs.ts"
import { aMessage, aPart, aSession } from "../suites/records.ts"

const writerPath = join(import.meta.dirname, "writer.ts")

function temporaryPath(): string {
  const directory = mkdtempSync(join(tmpdir(), "tackle-search-"))
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }))
  return join(directory, "tackle.db")
}

const talk = (id: string, ...texts: string[]): Change[] => [
  { kind: "session", session: aSession(id, { title: "" }) },
  { kind: "message", message: aMessage(`msg_${id}`, id) },
  ...texts.map(
    (text, index): Change => ({ kind: "part", part: aPart(`prt_${id}_${index}`, `msg_${id}`, id, text) }),
  ),
]

test("the database and the memory find the same in any texts", async () => {
  const sqlite = await openSqliteStore(temporaryPath())
  const memory = createMemoryStore()
  const letters = fc.oneof(
    fc.constantFrom(
      "foo",
      "Foo",
      "fóo",
      "bar",
      "b",
      "_",
      " ",
      "\n",
      "-",
      '"',
      "*",
      "ß",
      "ﬁ",
      "½",
      "日本",
      "日",
      "e\u0301",
    ),
    fc.string({ unit: "binary", maxLength: 3 }),
  )
  const text = fc.array(letters, { maxLength: 8 }).map((pieces) => pieces.join(""))
  let count = 0
  await fc.assert(
    fc.asyncProperty(
      fc.array(text, { maxLength: 4 }),
      fc.array(text, { maxLength: 4 }),
      async (texts, queries) => {
        count += 1
        const changes = talk(`ses_${String(count).padStart(4, "0")}`, ...texts)
        await sqlite.commit(changes)
        await memory.commit(changes)
        for (const query of queries) expect(await sqlite.search(query)).toEqual(await memory.search(query))
      },
    ),
    { numRuns: runs(150) },
  )
  await sqlite.close()
})

test("another process sees its own and foreign changes, and a read-only database is searched too", async () => {
  const path = temporaryPath()
  const [one, two] = [await openSqliteStore(path), await openSqliteStore(path)]
  await one.commit(talk("ses_1", "apple"))
  await two.commit(talk("ses_2", "apple"))
  const ids = async (store: typeof one) =>
    (await store.search("apple")).map(({ session }) => session.id).sort()
  expect(await Promise.all([ids(one), ids(two), ids(one)])).toEqual([
    ["ses_1", "ses_2"],
    ["ses_1", "ses_2"],
    ["ses_1", "ses_2"],
  ])
  await two.commit(talk("ses_3", "apple"))
  await one.deleteSession("ses_1")
  const { store: reader } = await openReadOnlySqliteStore(path)
  expect(await ids(reader)).toEqual(["ses_2", "ses_3"])
  expect(await ids(one)).toEqual(["ses_2", "ses_3"])
  await reader.close()
  await one.close()
  await two.close()
})

test("a damaged row does not prevent the search", async () => {
  const path = temporaryPath()
  const store = await openSqliteStore(path)
  await store.commit([...talk("ses_1", "apple", "broken"), ...talk("ses_2", "apple")])
  const database = new DatabaseSync(path)
  database.exec(
    "UPDATE parts SET data = '{' WHERE id = 'prt_ses_1_1'; UPDATE sessions SET data = '{' WHERE id = 'ses_2'",
  )
  database.close()
  expect((await store.search("apple")).map(({ session }) => session.id)).toEqual(["ses_1"])
  await store.close()
})

test("the index contains no word of a deleted session", async () => {
  const path = temporaryPath()
  const store = await openSqliteStore(path)
  await store.commit(talk("ses_1", "kept words"))
  await store.commit(talk("ses_2", "secret words"))
  expect(await store.search("secret")).toHaveLength(1)
  await store.deleteSession("ses_2")
  await store.reclaim()
  await store.close()
  const database = new DatabaseSync(path)
  database.exec("CREATE VIRTUAL TABLE temp.terms USING fts5vocab (main, search_words, row)")
  const terms = database.prepare("SELECT term FROM temp.terms").all()
  database.close()
  expect(terms.map(({ term }) => term)).toEqual(["kept", "words"])
})

test("the tables of the index exist only after a search", async () => {
  const path = temporaryPath()
  const store = await openSqliteStore(path)
  await store.commit(talk("ses_1", "apple"))
  await store.reclaim()
  const tables = () => {
    const database = new DatabaseSync(path)
    const rows = database.prepare("SELECT name FROM sqlite_schema WHERE name LIKE 'search%'").all()
    database.close()
    return rows.length
  }
  expect(tables()).toBe(0)
  await store.search("apple")
  expect(tables()).toBeGreaterThan(0)
  await store.close()
})

describe("an excerpt", () => {
  const marked = (text: string, query: string) => {
    const { excerpt, marks } = excerptOf(text, query)
    return marks.map(([start, end]) => excerpt.slice(start, end))
  }

  test("contains the whole short text, in one line, and marks the words", () => {
    expect(excerptOf("Fix the\nparser", "pars the")).toEqual({ excerpt: "Fix the parser", marks: [[4, 7]] })
    expect(marked("Fix the parser, then PARSE.", "the pars")).toEqual(["the", "parser", "PARSE"])
    expect(marked("naïve café", "cafe")).toEqual(["café"])
  })

  test("is cut at words around the first match", () => {
    const text = `${"before ".repeat(40)}needle ${"after ".repeat(60)}`
    const { excerpt, marks } = excerptOf(text, "needle")
    expect(excerpt).toMatch(/^…before .*before needle after .*…$/)
    expect(excerpt.length).toBeLessThan(170)
    expect(marks.map(([start, end]) => excerpt.slice(start, end))).toEqual(["needle"])
  })

  test("marks only whole words inside the excerpt of any text", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 400 }), fc.string(), (text, query) => {
        const { excerpt, marks } = excerptOf(text, query)
        expect(excerpt).not.toMatch(/[\r\n]/)
        for (const [start, end] of marks) {
          expect(start).toBeLessThan(end)
          expect(end).toBeLessThanOrEqual(excerpt.length)
        }
      }),
    )
  })
})

test("another process can write all the time while the first search builds the index", async () => {
  const path = temporaryPath()
  const store = await openSqliteStore(path)
  const text = Array.from({ length: 100 }, (_, index) => `word${index}`).join(" ")
  for (let start = 0; start < 4000; start += 1000)
    await store.commit(
      Array.from({ length: 1000 }, (_, index) => talk(`ses_${start + index}`, text, text, text)).flat(),
    )
  const search = store.search("word7")
  const writer = spawn(process.execPath, [writerPath, path, "other", "20"], { stdio: "ignore" })
  const written = once(writer, "exit")
  expect(
    await Promise.race([search.then(() => "search"), written.then(([code]) => `written, ${code}`)]),
  ).toBe("written, 0")
  expect(await search).toHaveLength(100)
  await store.close()
})
