import { renameSync, rmSync, symlinkSync, utimesSync } from "node:fs"
import { pathToFileURL } from "node:url"
import { afterEach, expect, test } from "vitest"
import { createOpenDocuments } from "../../src/lsp/open-documents.ts"
import { type TemporaryProject, temporaryProject } from "../../src/testing/project.ts"

let project: TemporaryProject | undefined
afterEach(() => project?.remove())

async function setup(files: Record<string, string>) {
  project = await temporaryProject(files)
  const sent: unknown[] = []
  const shown: string[] = []
  const documents = createOpenDocuments({
    notify: (method, params) => sent.push([method, params]),
    onShow: (path) => shown.push(path),
  })
  const path = project.path("a.ts")
  return { project, documents, sent, shown, path, uri: pathToFileURL(path).href }
}

test("opens a file once, and sends it again after each change", async () => {
  const { project, documents, sent, shown, path, uri } = await setup({ "a.ts": "one" })
  documents.show(path)
  documents.show(path)
  expect(sent).toEqual([
    ["textDocument/didOpen", { textDocument: { uri, languageId: "typescript", version: 1, text: "one" } }],
  ])
  await project.write("a.ts", "four")
  documents.refresh()
  documents.refresh()
  expect(sent.slice(1)).toEqual([
    ["textDocument/didChange", { textDocument: { uri, version: 2 }, contentChanges: [{ text: "four" }] }],
  ])
  expect(documents.version(path)).toBe(2)
  expect(shown).toEqual([path, path])
})

test("detects a replaced file with the same time and size", async () => {
  const { project, documents, sent, path } = await setup({ "a.ts": "one", "b.ts": "two" })
  for (const name of ["a.ts", "b.ts"]) utimesSync(project.path(name), 1, 1)
  documents.show(path)
  renameSync(project.path("b.ts"), path)
  documents.show(path)
  expect(sent.at(-1)).toMatchObject(["textDocument/didChange", { contentChanges: [{ text: "two" }] }])
})

test("closes a deleted file, and opens it again when it is created again", async () => {
  const { project, documents, sent, path, uri } = await setup({ "a.ts": "one" })
  documents.show(path)
  rmSync(path)
  documents.refresh()
  expect(sent.at(-1)).toEqual(["textDocument/didClose", { textDocument: { uri } }])
  expect(() => documents.show(path)).toThrow(/ENOENT/)
  await project.write("a.ts", "two")
  documents.show(path)
  expect(sent.at(-1)).toMatchObject(["textDocument/didOpen", { textDocument: { version: 1, text: "two" } }])
})

test("does not follow a link that replaced a file", async () => {
  const { project, documents, sent, path } = await setup({ "a.ts": "one", "secret.env": "KEY=1" })
  documents.show(path)
  rmSync(path)
  symlinkSync(project.path("secret.env"), path)
  documents.refresh()
  expect(() => documents.show(path)).toThrow()
  expect(JSON.stringify(sent)).not.toContain("KEY")
  expect(sent.at(-1)).toMatchObject(["textDocument/didClose", {}])
})

test("keeps at most 64 files open, the most recently used", async () => {
  const names = Array.from({ length: 66 }, (_, index) => `f${index}.ts`)
  const { project, documents, sent } = await setup(Object.fromEntries(names.map((name) => [name, name])))
  for (const name of names.slice(0, 64)) documents.show(project.path(name))
  documents.show(project.path("f0.ts"))
  for (const name of names.slice(64)) documents.show(project.path(name))
  const closed = sent.filter((entry) => JSON.stringify(entry).includes("didClose"))
  expect(closed).toMatchObject(
    ["f1.ts", "f2.ts"].map((name) => [
      "textDocument/didClose",
      { textDocument: { uri: pathToFileURL(project.path(name)).href } },
    ]),
  )
})

test("keeps the order of use when it checks all open files for changes", async () => {
  const names = Array.from({ length: 65 }, (_, index) => `f${index}.ts`)
  const { project, documents, sent } = await setup(Object.fromEntries(names.map((name) => [name, name])))
  for (const name of names.slice(0, 64)) documents.show(project.path(name))
  documents.refresh()
  documents.show(project.path("f64.ts"))
  expect(sent.at(-1)).toMatchObject([
    "textDocument/didClose",
    { textDocument: { uri: pathToFileURL(project.path("f0.ts")).href } },
  ])
})

test("rejects a directory and a file that is too large", async () => {
  const { project, documents, sent } = await setup({ "big.ts": "x".repeat(4 * 1024 * 1024 + 1) })
  expect(() => documents.show(project.path("big.ts"))).toThrow(/too large/)
  expect(() => documents.show(project.directory)).toThrow(/is not a file/)
  expect(sent).toEqual([])
})
