import { chmodSync, symlinkSync } from "node:fs"
import { delimiter } from "node:path"
import { afterEach, expect, test } from "vitest"
import { type TemporaryProject, temporaryProject } from "../../src/testing/project.ts"
import { findProgram, programDirectories } from "../../src/util/find-program.ts"

const made: TemporaryProject[] = []

afterEach(() => Promise.all(made.splice(0).map((project) => project.remove())))

/** A project and another directory, with a program of the same name in each. */
async function setup() {
  const project = await temporaryProject({ "node_modules/.bin/server": "#!/bin/sh\n", "plain.txt": "" })
  const elsewhere = await temporaryProject({ "bin/server": "#!/bin/sh\n", "bin/text": "" })
  made.push(project, elsewhere)
  const own = project.path("node_modules/.bin/server")
  const other = elsewhere.path("bin/server")
  for (const path of [own, other]) chmodSync(path, 0o755)
  const find = (name: string, trusted: boolean, directories = [elsewhere.path("bin")]) =>
    findProgram(name, { searchPath: directories.join(delimiter), worktree: project.directory, trusted })
  return { project, elsewhere, own, other, find }
}

test("finds a program on PATH and ignores files that are not executable", async () => {
  const { other, find } = await setup()
  expect(find("server", false)).toBe(other)
  expect(find("text", false)).toBeUndefined()
  expect(find("missing", false)).toBeUndefined()
  expect(find("server", false, ["", "bin", "."])).toBeUndefined()
})

test("prefers programs of a trusted project and ignores those of an untrusted one", async () => {
  const { project, elsewhere, own, other, find } = await setup()
  const inProject = project.path("node_modules/.bin")
  expect(find("server", true)).toBe(own)
  expect(find("server", false, [inProject])).toBeUndefined()
  expect(find("server", false, [inProject, elsewhere.path("bin")])).toBe(other)
  expect(find(own, false)).toBeUndefined()
  expect(find("./node_modules/.bin/server", false)).toBeUndefined()
  expect(find("./node_modules/.bin/server", true)).toBe(own)
  expect(find(other, false)).toBe(other)
})

test("ignores links and interpreters that lead into an untrusted project", async () => {
  const { project, elsewhere, own, find } = await setup()
  symlinkSync(own, elsewhere.path("bin/linked"))
  symlinkSync(project.path("node_modules/.bin"), elsewhere.path("tools"))
  expect(find("linked", false)).toBeUndefined()
  expect(find("linked", true)).toBe(elsewhere.path("bin/linked"))
  expect(find("server", false, [elsewhere.path("tools")])).toBeUndefined()
  const searchPath = [project.path("node_modules/.bin"), elsewhere.path("tools"), elsewhere.path("bin")].join(
    delimiter,
  )
  expect(programDirectories({ searchPath, worktree: project.directory, trusted: false })).toEqual([
    elsewhere.path("bin"),
  ])
})
