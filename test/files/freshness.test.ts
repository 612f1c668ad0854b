import { expect, test } from "vitest"
import { createFileTracker } from "../../src/files/file-tracker.ts"
import { accessError, assertSeen } from "../../src/files/freshness.ts"

test("describes a system error without the internal path", () => {
  const fault = (code: string) =>
    Object.assign(new Error(`${code}: no, open '/proc/self/fd/25/.tackle-a6.tmp'`), { code })
  expect(accessError("write", "/w/b.txt", fault("EACCES")).message).toBe(
    "Cannot write /w/b.txt: permission denied.",
  )
  expect(accessError("write", "/w/b.txt", fault("EROFS")).message).toMatch(
    /: the file system is read-only\.$/,
  )
  expect(accessError("write", "/w/b.txt", fault("ENOSPC")).message).toMatch(/: the disk is full\.$/)
})

test.each([
  { name: "a.txt", content: "text", next: "First read it with the read tool" },
  { name: "a.zip", content: "PK", next: "first delete it with a command" },
])("names a next step that works for $name", ({ name, content, next }) => {
  const path = `/w/${name}`
  const bytes = Buffer.from(content)
  const before = { exists: true, path, real: path, bytes, stamp: { size: bytes.length, mtimeMs: 0 } } as const
  expect(() => assertSeen(before, createFileTracker())).toThrow(next)
})
