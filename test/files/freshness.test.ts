import { expect, test } from "vitest"
import { accessError } from "../../src/files/freshness.ts"

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
