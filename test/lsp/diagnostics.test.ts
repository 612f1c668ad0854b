import { expect, test } from "vitest"
import { createPublishedDiagnostics } from "../../src/lsp/diagnostics.ts"

const path = "/w/a b.ts"
const wait = { since: 0, version: 1, quietMs: 20, ms: 60_000, signal: new AbortController().signal }

function diagnostics(...messages: string[]) {
  const position = { line: 0, character: 0 }
  return messages.map((message) => ({ message, range: { start: position, end: position } }))
}

function publish(
  store: ReturnType<typeof createPublishedDiagnostics>,
  messages: string[],
  more: object = {},
) {
  // Servers encode URIs differently.
  store.receive({ uri: "file:///w/a%20b.ts", diagnostics: diagnostics(...messages), ...more })
}

test("returns the last of several quick reports", async () => {
  const store = createPublishedDiagnostics()
  const next = store.next(path, wait)
  publish(store, ["syntax"])
  publish(store, ["syntax", "types"])
  expect(await next).toEqual(diagnostics("syntax", "types"))
  expect(store.count(path)).toBe(2)
})

test("ignores reports from before and for an earlier version", async () => {
  const store = createPublishedDiagnostics()
  publish(store, ["old"])
  const next = store.next(path, { ...wait, since: 1, version: 3 })
  publish(store, ["late"], { version: 2 })
  publish(store, [], { version: 3 })
  expect(await next).toEqual([])
  expect(await store.next(path, { ...wait, since: 3, ms: 20 })).toBeUndefined()
})

test("ignores other files and invalid reports", async () => {
  const store = createPublishedDiagnostics()
  for (const params of [
    null,
    {},
    { uri: "file:///w/b.ts", diagnostics: [] },
    { uri: "untitled:1", diagnostics: [] },
  ])
    store.receive(params)
  expect(await store.next(path, { ...wait, ms: 20 })).toBeUndefined()
})

test("stops waiting at an abort", async () => {
  const stop = new AbortController()
  const next = createPublishedDiagnostics().next(path, { ...wait, signal: stop.signal })
  stop.abort()
  await expect(next).rejects.toMatchObject({ code: "aborted" })
})
