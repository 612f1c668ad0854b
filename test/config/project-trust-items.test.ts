import { symlinkSync } from "node:fs"
import { join } from "node:path"
import { afterEach, beforeEach, expect, test } from "vitest"
import { configDirectories } from "../../src/config/location.ts"
import { projectTrustItems } from "../../src/config/project-trust-items.ts"
import { createTestProject, type TestProject } from "./test-project.ts"

let place: TestProject

beforeEach(() => {
  place = createTestProject()
})
afterEach(() => place.remove())

test("requires trust for the user's tools inside the work tree, also behind a link", async () => {
  place.write("project/dot/tackle/tool/mine.ts", "")
  place.write("home/.config/opencode/tool/other.ts", "")
  symlinkSync(join(place.project, "dot/tackle"), join(place.home, ".config/tackle"))
  const location = { directory: place.project, worktree: place.project, home: place.home, environment: {} }
  const items = await projectTrustItems({ ...location, dataDirectory: join(place.home, "data") })
  expect(items.map(({ kind, file }) => `${kind} ${file}`)).toEqual([
    `tool ${join(place.home, ".config/tackle/tool/mine.ts")}`,
  ])
  expect(configDirectories(location)).toEqual([
    { path: join(place.home, ".config/opencode"), scope: "user" },
    { path: join(place.home, ".config/tackle"), scope: "user", exposed: true },
  ])
})

test("requires trust for the config and tools of the project, not for the user's", async () => {
  place.write("home/.config/tackle/config.json", {})
  place.write("home/.config/tackle/tool/mine.ts", "")
  place.write("project/sub/tackle.toml", "")
  place.write("project/opencode.json", {})
  place.write("project/.opencode/tool/a.ts", "")
  place.write("project/sub/.tackle/tools/b", "")
  place.write("project/other/tackle.json", {})
  const location = {
    directory: join(place.project, "sub"),
    worktree: place.project,
    home: place.home,
    environment: {},
  }
  expect(
    (await projectTrustItems({ ...location, dataDirectory: join(place.home, "data") })).map(
      ({ kind, path }) => `${kind} ${path}`,
    ),
  ).toEqual([
    "tool .opencode/tool/a.ts",
    "config opencode.json",
    "tool sub/.tackle/tools/b",
    "config sub/tackle.toml",
  ])
})
