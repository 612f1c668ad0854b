import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { isAbsolute, join, relative } from "node:path"
import fc from "fast-check"
import { afterEach, beforeEach, expect, test } from "vitest"
import { type FollowedPath, followPath, isInside, realPath } from "../../src/util/paths.ts"
import { runs } from "../runs.ts"

let root: string

beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "tackle-paths-")))
  mkdirSync(join(root, "w/sub"), { recursive: true })
  mkdirSync(join(root, "other/deep"), { recursive: true })
  writeFileSync(join(root, "w/file"), "")
})
afterEach(() => rmSync(root, { recursive: true, force: true }))

function link(target: string): void {
  symlinkSync(target, join(root, "w/link"))
}

const real = (path: string) => realPath(join(root, path)).slice(root.length + 1)

test("appends the missing part of a path", () => {
  expect(real("w/none/at/all")).toBe("w/none/at/all")
  link("sub")
  expect(real("w/link/none")).toBe("w/sub/none")
  expect(real("w/file/none")).toBe("w/file/none")
})

test.each([
  ["an absolute path", () => join(root, "other/new"), "other/new"],
  ["a relative one", () => "../other/new", "other/new"],
  ["a directory that is missing too", () => "../none/new", "none/new"],
])("follows a link to a missing target: %s", (_, target, expected) => {
  link(target())
  expect(real("w/link")).toBe(expected)
  expect(real("w/link/more")).toBe(`${expected}/more`)
})

test("applies `..` to the target of a preceding link", () => {
  symlinkSync(join(root, "other/deep"), join(root, "w/into"))
  link("into/../new")
  expect(real("w/link")).toBe("other/new")
})

test("follows chains of broken links and rejects loops", () => {
  symlinkSync("second", join(root, "w/first"))
  symlinkSync("../other/new", join(root, "w/second"))
  expect(real("w/first")).toBe("other/new")
  symlinkSync("none/../circle", join(root, "w/circle"))
  expect(() => real("w/circle")).toThrow()
  link("link")
  expect(() => real("w/link")).toThrow(/ELOOP/)
})

test("limits links that double at every step", () => {
  for (let n = 0; n < 40; n++) symlinkSync(`l${n + 1}/../l${n + 1}`, join(root, `w/l${n}`))
  expect(() => real("w/l0")).toThrow()
})

test("returns the same results with a shared cache in any order", () => {
  link("../other")
  symlinkSync("none/at/all", join(root, "w/dangling"))
  const paths = [
    "w",
    "w/sub",
    "w/file",
    "w/file/x",
    "w/link/deep",
    "w/link/no",
    "w/no/no",
    "w/dangling/x",
    "w/dangling",
  ]
  const there = ["w", "w/sub", "w/file", "w/link/deep"]
  for (const order of [paths, paths.toReversed()]) {
    const known = new Map<string, FollowedPath>()
    for (const path of [...order, ...order]) {
      const found = followPath(join(root, path), known)
      expect(found, path).toEqual({ real: realPath(join(root, path)), exists: there.includes(path) })
    }
  }
})

test("isInside agrees with relative paths for any spelling", () => {
  const part = fc.constantFrom("", ".", "..", "a", "ab", ".a", "..a", "a.", "...")
  const path = fc.array(part, { maxLength: 5 }).map((parts) => `/${parts.join("/")}`)
  fc.assert(
    fc.property(path, path, (inner, outer) => {
      const way = relative(outer, inner)
      const climbs = way === ".." || way.startsWith("../") || isAbsolute(way)
      expect(isInside(inner, outer)).toBe(!climbs)
    }),
    { numRuns: runs(3_000) },
  )
})
