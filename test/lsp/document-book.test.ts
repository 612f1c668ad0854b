import { renameSync, rmSync, symlinkSync, utimesSync } from "node:fs"
import { pathToFileURL } from "node:url"
import { afterEach, expect, test } from "vitest"
import { createDocumentBook } from "../../src/lsp/document-book.ts"
import { type TemporaryProject, temporaryProject } from "../../src/testing/project.ts"

let project: TemporaryProject | undefined
afterEach(() => project?.remove())

async function setup(files: Record<string, string>) {
  project = await temporaryProject(files)
  const told: unknown[] = []
  const shown: string[] = []
  const book = createDocumentBook({
    notify: (method, params) => told.push([method, params]),
    onShow: (path) => shown.push(path),
  })
  const path = project.path("a.ts")
  return { project, book, told, shown, path, uri: pathToFileURL(path).href }
}

test("a file is opened once, and sent again as often as it changed", async () => {
  const { project, book, told, shown, path, uri } = await setup({ "a.ts": "one" })
  book.show(path)
  book.show(path)
  expect(told).toEqual([
    ["textDocument/didOpen", { textDocument: { uri, languageId: "typescript", version: 1, text: "one" } }],
  ])
  await project.write("a.ts", "four")
  book.refresh()
  book.refresh()
  expect(told.slice(1)).toEqual([
    ["textDocument/didChange", { textDocument: { uri, version: 2 }, contentChanges: [{ text: "four" }] }],
  ])
  expect(book.version(path)).toBe(2)
  expect(shown).toEqual([path, path])
})

test("another file in its place is another, though time and size are the same", async () => {
  const { project, book, told, path } = await setup({ "a.ts": "one", "b.ts": "two" })
  for (const name of ["a.ts", "b.ts"]) utimesSync(project.path(name), 1, 1)
  book.show(path)
  renameSync(project.path("b.ts"), path)
  book.show(path)
  expect(told.at(-1)).toMatchObject(["textDocument/didChange", { contentChanges: [{ text: "two" }] }])
})

test("what is gone is closed, and opened anew when it comes back", async () => {
  const { project, book, told, path, uri } = await setup({ "a.ts": "one" })
  book.show(path)
  rmSync(path)
  book.refresh()
  expect(told.at(-1)).toEqual(["textDocument/didClose", { textDocument: { uri } }])
  expect(() => book.show(path)).toThrow(/ENOENT/)
  await project.write("a.ts", "two")
  book.show(path)
  expect(told.at(-1)).toMatchObject(["textDocument/didOpen", { textDocument: { version: 1, text: "two" } }])
})

test("a link that took the place of a file is not followed", async () => {
  const { project, book, told, path } = await setup({ "a.ts": "one", "secret.env": "KEY=1" })
  book.show(path)
  rmSync(path)
  symlinkSync(project.path("secret.env"), path)
  book.refresh()
  expect(() => book.show(path)).toThrow()
  expect(JSON.stringify(told)).not.toContain("KEY")
  expect(told.at(-1)).toMatchObject(["textDocument/didClose", {}])
})

test("at most 64 files are open, and those used last stay", async () => {
  const names = Array.from({ length: 66 }, (_, index) => `f${index}.ts`)
  const { project, book, told } = await setup(Object.fromEntries(names.map((name) => [name, name])))
  for (const name of names.slice(0, 64)) book.show(project.path(name))
  book.show(project.path("f0.ts"))
  for (const name of names.slice(64)) book.show(project.path(name))
  const closed = told.filter((entry) => JSON.stringify(entry).includes("didClose"))
  expect(closed).toMatchObject(
    ["f1.ts", "f2.ts"].map((name) => [
      "textDocument/didClose",
      { textDocument: { uri: pathToFileURL(project.path(name)).href } },
    ]),
  )
})

test("a file that is too large is not sent", async () => {
  const { project, book, told } = await setup({ "big.ts": "x".repeat(4 * 1024 * 1024 + 1) })
  expect(() => book.show(project.path("big.ts"))).toThrow(/too large/)
  expect(() => book.show(project.directory)).toThrow(/no file/)
  expect(told).toEqual([])
})
