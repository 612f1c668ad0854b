import { expect, test } from "vitest"
import { createDiagnosticBook } from "../../src/lsp/diagnostic-book.ts"

const path = "/w/a b.ts"
const wait = { since: 0, version: 1, quietMs: 20, ms: 60_000, signal: new AbortController().signal }

function diagnostics(...messages: string[]) {
  const position = { line: 0, character: 0 }
  return messages.map((message) => ({ message, range: { start: position, end: position } }))
}

function publish(book: ReturnType<typeof createDiagnosticBook>, messages: string[], more: object = {}) {
  // Servers write addresses in ways of their own.
  book.receive({ uri: "file:///w/a%20b.ts", diagnostics: diagnostics(...messages), ...more })
}

test("the last of what comes together is what holds", async () => {
  const book = createDiagnosticBook()
  const next = book.next(path, wait)
  publish(book, ["syntax"])
  publish(book, ["syntax", "types"])
  expect(await next).toEqual(diagnostics("syntax", "types"))
  expect(book.count(path)).toBe(2)
})

test("what was told before does not count, nor what was told of an earlier version", async () => {
  const book = createDiagnosticBook()
  publish(book, ["old"])
  const next = book.next(path, { ...wait, since: 1, version: 3 })
  publish(book, ["late"], { version: 2 })
  publish(book, [], { version: 3 })
  expect(await next).toEqual([])
  expect(await book.next(path, { ...wait, since: 3, ms: 20 })).toBeUndefined()
})

test("nothing is heard of other files, or in other forms", async () => {
  const book = createDiagnosticBook()
  for (const params of [
    null,
    {},
    { uri: "file:///w/b.ts", diagnostics: [] },
    { uri: "untitled:1", diagnostics: [] },
  ])
    book.receive(params)
  expect(await book.next(path, { ...wait, ms: 20 })).toBeUndefined()
})

test("waiting can be interrupted", async () => {
  const stop = new AbortController()
  const next = createDiagnosticBook().next(path, { ...wait, signal: stop.signal })
  stop.abort()
  await expect(next).rejects.toMatchObject({ code: "aborted" })
})
