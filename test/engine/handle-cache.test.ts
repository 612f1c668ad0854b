import { setImmediate as nextTurn } from "node:timers/promises"
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { expect, test } from "vitest"
import { createHandleCache } from "../../src/engine/open-sessions.ts"
import type { LocalSession } from "../../src/session/handle.ts"

async function collect(): Promise<void> {
  setFlagsFromString("--expose-gc")
  const collectNow: () => void = runInNewContext("gc")
  for (let time = 0; time < 3; time += 1) {
    await nextTurn()
    collectNow()
  }
  await nextTurn()
}

/** Only its identity matters here. */
const aHandle = (id: string) => ({ id, history: new Array(10).fill(id) }) as unknown as LocalSession

test("keeps a released handle while other code holds it", async () => {
  const book = createHandleCache()
  const kept = aHandle("ses_kept")
  book.add(kept)
  book.add(aHandle("ses_dropped"))
  book.add(aHandle("ses_held"))
  for (const id of ["ses_kept", "ses_dropped", "ses_none"]) book.release(id)
  await collect()
  expect(book.get("ses_kept")).toBe(kept)
  expect(book.get("ses_dropped")).toBeUndefined()
  expect(book.all().map(({ id }) => id)).toEqual(["ses_held", "ses_kept"])

  book.add(kept)
  expect(book.all().map(({ id }) => id)).toEqual(["ses_held", "ses_kept"])
  book.forget("ses_kept")
  expect(book.get("ses_kept")).toBeUndefined()
})
