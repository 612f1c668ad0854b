import { linkSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { basename, join } from "node:path"
import { afterEach, beforeEach, expect, test } from "vitest"
import { filesNeedingPermission } from "../../../src/permission/shell/directory-files.ts"

let root: string

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "tackle-below-"))
})
afterEach(() => rmSync(root, { recursive: true, force: true }))

function put(path: string): void {
  mkdirSync(join(root, path, ".."), { recursive: true })
  writeFileSync(join(root, path), "")
}

const secrets = (hidden: boolean) =>
  filesNeedingPermission(root, {
    hidden,
    needsPermission: (path) => basename(path) === "secret",
    listing: { left: 100_000 },
  })

test("finds files at any depth, and hidden ones if asked for", async () => {
  const places = Array.from({ length: 100 }, (_, index) => `d${index}/e`)
  for (const place of places) put(`${place}/plain`)
  for (const name of ["secret", "d3/e/secret", "d99/e/f/secret", ".hidden/secret"]) put(name)
  symlinkSync(root, join(root, "round"))
  const names = async (hidden: boolean) =>
    (await secrets(hidden))?.map((path) => path.slice(root.length + 1)).sort()
  expect(await names(false)).toEqual(["d3/e/secret", "d99/e/f/secret", "secret"])
  expect(await names(true)).toEqual([".hidden/secret", "d3/e/secret", "d99/e/f/secret", "secret"])
})

test("returns at most ten files", async () => {
  for (let index = 0; index < 40; index++) put(`d${index}/secret`)
  expect(await secrets(true)).toHaveLength(10)
})

test("judges no file of a directory with too many entries", { timeout: 120_000 }, async () => {
  put("one")
  for (let index = 0; index < 11; index++) {
    put(`d${index}/secret`)
    // A link takes a tenth of the time of a new file.
    for (let file = 0; file < 1_000; file++) linkSync(join(root, "one"), join(root, `d${index}/${file}`))
  }
  let judged = 0
  const found = await filesNeedingPermission(root, {
    hidden: true,
    needsPermission: () => ++judged > 0,
    listing: { left: 100_000 },
  })
  expect(found).toBeUndefined()
  expect(judged).toBe(0)
})

test("finds nothing in a file", async () => {
  put("secret")
  expect(
    await filesNeedingPermission(join(root, "secret"), {
      hidden: true,
      needsPermission: () => true,
      listing: { left: 100_000 },
    }),
  ).toEqual([])
  expect(
    await filesNeedingPermission(join(root, "none"), {
      hidden: true,
      needsPermission: () => true,
      listing: { left: 100_000 },
    }),
  ).toEqual([])
})
