import { mkdirSync } from "node:fs"
import { join } from "node:path"
import { afterEach, beforeEach, expect, test } from "vitest"
import { findWorktree } from "../../src/config/location.ts"
import { createTestProject, type TestProject } from "./test-project.ts"

let place: TestProject

beforeEach(() => {
  place = createTestProject()
})
afterEach(() => place.remove())

test("finds the nearest directory upwards with .git, a directory or a file", () => {
  const deep = join(place.project, "a/b")
  mkdirSync(deep, { recursive: true })
  expect(findWorktree(deep)).toBe(place.project)
  place.write("project/a/.git", "gitdir: elsewhere")
  expect(findWorktree(deep)).toBe(join(place.project, "a"))
  expect(findWorktree(place.home)).toBe(place.home)
})
