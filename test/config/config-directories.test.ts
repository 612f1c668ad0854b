import { join } from "node:path"
import { afterEach, beforeEach, expect, test } from "vitest"
import { configDirectories } from "../../src/config/location.ts"
import { createTestProject, type TestProject } from "./test-project.ts"

let place: TestProject

beforeEach(() => {
  place = createTestProject()
})
afterEach(() => place.remove())

test("returns the existing config directories: the user's, then the project's from its root down", () => {
  for (const name of [
    "home/.config/tackle/x",
    "project/.tackle/x",
    "project/sub/.opencode/x",
    "project/sub/.tackle/x",
  ]) {
    place.write(name, "")
  }
  place.write("project/.opencode", "a file")
  const location = {
    directory: join(place.project, "sub"),
    worktree: place.project,
    home: place.home,
    environment: {},
  }
  expect(configDirectories(location)).toEqual([
    { path: join(place.home, ".config/tackle"), scope: "user" },
    { path: join(place.project, "sub/.opencode"), scope: "project" },
    { path: join(place.project, ".tackle"), scope: "project" },
    { path: join(place.project, "sub/.tackle"), scope: "project" },
  ])
})
