import { mkdir, symlink, writeFile } from "node:fs/promises"
import { relative } from "node:path"
import { expect, test } from "vitest"
import { defaultScanLimits, scanTree } from "../../src/files/scan.ts"
import { temporaryProject } from "../../src/testing/project.ts"

test("scans files and links that are not ignored, and keeps the bytes of small ones", async () => {
  const project = await temporaryProject({
    ".gitignore": "*.log\n",
    "a.log": "ignored",
    "a.txt": "A",
    "node_modules/x.js": "x",
    "own/kept": "x",
    "large.bin": "12345",
  })
  await symlink("a.txt", project.path("link"))
  await mkdir(project.path("empty"))
  const limits = { ...defaultScanLimits, fileBytes: 4 }
  const scan = await scanTree(project.directory, { limits, leaveOut: project.path("own") })
  const seen = [...scan.files].map(([path, file]) => [
    relative(project.directory, path),
    file.bytes?.toString(),
  ])
  expect(seen.toSorted()).toEqual([
    [".gitignore", undefined],
    ["a.txt", "A"],
    ["large.bin", undefined],
    ["link", "a.txt"],
  ])
  expect(scan).toMatchObject({ limited: false, unreadable: [] })
  await project.remove()
})

test("reports an incomplete scan at the entry limit", async () => {
  const project = await temporaryProject({ a: "", b: "", c: "" })
  const limits = { ...defaultScanLimits, entries: 2 }
  const scan = await scanTree(project.directory, { limits, leaveOut: "" })
  expect(scan.limited).toBe(true)
  expect(scan.files.size).toBe(2)
  await project.remove()
})

test("reads a very new file again", async () => {
  const project = await temporaryProject({ a: "1" })
  const options = { limits: defaultScanLimits, leaveOut: "" }
  const known = await scanTree(project.directory, options)
  await writeFile(project.path("a"), "2")
  const scan = await scanTree(project.directory, { ...options, known })
  expect(scan.files.get(project.path("a"))?.bytes?.toString()).toBe("2")
  await project.remove()
})
