import { expect, test } from "vitest"
import type { Grant } from "../../src/schema/permission.ts"
import { createGrants } from "../../src/store/grants.ts"
import { createMemoryStore } from "../../src/store/memory.ts"

function grant(id: string, change: Partial<Grant> = {}): Grant {
  const created = Number(id.replaceAll(/\D/g, ""))
  const whole: Grant = {
    id,
    scope: "project",
    worktree: "/w",
    permission: "bash",
    pattern: `${id} *`,
    action: "allow",
    time: { created },
  }
  return { ...whole, ...change }
}

async function storeWithSession() {
  const store = createMemoryStore()
  const time = { created: 0, updated: 0 }
  await store.commit([
    {
      kind: "session",
      session: { id: "ses_1", title: "", directory: "/w", worktree: "/w", agent: "build", time },
    },
  ])
  return store
}

const patterns = (rules: readonly { pattern: string }[]) => rules.map(({ pattern }) => pattern)

test("applies a grant only in its worktree or session", async () => {
  const book = createGrants(await storeWithSession())
  await book.add([grant("gra_1"), grant("gra_2", { scope: "session", sessionID: "ses_1" })])
  expect(patterns(book.rules({ id: "ses_1", worktree: "/w" }))).toEqual(["gra_1 *", "gra_2 *"])
  expect(patterns(book.rules({ id: "ses_2", worktree: "/w" }))).toEqual(["gra_1 *"])
  expect(patterns(book.rules({ id: "ses_1", worktree: "/elsewhere" }))).toEqual([])
})

test("lists only the grants of the worktree, oldest first", async () => {
  const store = await storeWithSession()
  const book = createGrants(store)
  await book.add([
    grant("gra_2"),
    grant("gra_1", { scope: "session", sessionID: "ses_1" }),
    grant("gra_3", { worktree: "/other" }),
  ])
  expect((await createGrants(store).list("/w")).map(({ id }) => id)).toEqual(["gra_1", "gra_2"])
})

test("a removed grant ends here, in the store, and elsewhere after the next load", async () => {
  const store = await storeWithSession()
  const [here, elsewhere] = [createGrants(store), createGrants(store)]
  const place = { id: "ses_1", worktree: "/w" }
  await here.add([grant("gra_1"), grant("gra_2")])
  await elsewhere.load(place)
  await here.remove(["gra_1"])
  expect(patterns(here.rules(place))).toEqual(["gra_2 *"])
  expect((await store.grants({ worktree: "/w" })).map(({ id }) => id)).toEqual(["gra_2"])
  expect(elsewhere.rules(place)).toHaveLength(2)
  await elsewhere.load(place)
  expect(patterns(elsewhere.rules(place))).toEqual(["gra_2 *"])
})

test("keeps a grant of an unstored session in memory only", async () => {
  const store = createMemoryStore()
  const book = createGrants(store)
  await book.add([grant("gra_1", { scope: "session", sessionID: "ses_9" })])
  expect(book.rules({ id: "ses_9", worktree: "/w" })).toHaveLength(1)
  expect(await store.grants({ worktree: "/w", sessionID: "ses_9" })).toEqual([])
})

test("a grant removed during a query stays removed, and more than a hundred sessions are listed", async () => {
  const store = await storeWithSession()
  const book = createGrants(store)
  await book.add([grant("gra_1"), grant("gra_2", { scope: "session", sessionID: "ses_1" })])
  await Promise.all([book.load({ id: "ses_1", worktree: "/w" }), book.remove(["gra_1"])])
  expect(patterns(book.rules({ id: "ses_1", worktree: "/w" }))).toEqual(["gra_2 *"])

  const later = (n: number) => ({ created: n, updated: n })
  const session = { title: "", directory: "/w", worktree: "/w", agent: "build" }
  for (let n = 1; n <= 100; n++)
    await store.commit([{ kind: "session", session: { ...session, id: `ses_later${n}`, time: later(n) } }])
  expect((await book.list("/w")).map(({ id }) => id)).toEqual(["gra_2"])
})

test("keeps grants of an unstored session across loads until they are forgotten", async () => {
  const book = createGrants(await storeWithSession())
  const place = { id: "ses_unstored", worktree: "/w" }
  await book.add([grant("gra_1", { scope: "session", sessionID: "ses_unstored" })])
  await book.load(place)
  expect(patterns(book.rules(place))).toEqual(["gra_1 *"])
  book.forget("ses_unstored")
  expect(patterns(book.rules(place))).toEqual([])
})
