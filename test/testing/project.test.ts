import { execFileSync } from "node:child_process"
import { existsSync, realpathSync } from "node:fs"
import { afterEach, expect, test } from "vitest"
import { type TemporaryProject, temporaryProject } from "../../src/testing/project.ts"

let project: TemporaryProject | undefined

afterEach(async () => {
  await project?.remove()
})

test("writes files with their parent directories, reads and removes them", async () => {
  project = await temporaryProject({ "src/deep/a.txt": "one\n" })
  await project.write("b.txt", "two")
  expect(await project.read("src/deep/a.txt")).toBe("one\n")
  expect(await project.read("b.txt")).toBe("two")
  expect(project.path("src", "deep")).toBe(`${realpathSync(project.directory)}/src/deep`)
  await project.remove()
  expect(existsSync(project.directory)).toBe(false)
})

test("commits the files to main with git", async () => {
  project = await temporaryProject(
    { "a.txt": "one", ".gitignore": "*.log\n", "x.log": "noise" },
    { git: true },
  )
  const git = (...args: string[]) =>
    execFileSync("git", args, { cwd: project?.directory, encoding: "utf8" }).trim()
  expect(git("rev-parse", "--abbrev-ref", "HEAD")).toBe("main")
  expect(git("ls-tree", "-r", "--name-only", "HEAD").split("\n")).toEqual([".gitignore", "a.txt"])
  expect(git("status", "--porcelain")).toBe("")
})
