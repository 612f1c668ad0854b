import { existsSync, mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, expect, test } from "vitest"
import { removeOldSpills } from "../../src/tool/spill-retention.ts"

const root = mkdtempSync(join(tmpdir(), "tackle-retention-"))
const now = Date.now()
const dayMs = 24 * 60 * 60 * 1000

afterEach(() => rmSync(root, { recursive: true, force: true }))

function session(name: string, ages: { directory: number; file: number }): string {
  const directory = join(root, name)
  mkdirSync(directory, { recursive: true })
  const file = join(directory, "tool_a_1.txt")
  writeFileSync(file, "text")
  const at = (days: number) => new Date(now - days * dayMs)
  utimesSync(file, at(ages.file), at(ages.file))
  utimesSync(directory, at(ages.directory), at(ages.directory))
  return directory
}

test("sessions are removed by their newest file", () => {
  const old = session("ses_old", { directory: 8, file: 8 })
  const fresh = session("ses_fresh", { directory: 8, file: 6 })
  removeOldSpills(root, 7, now)
  expect(existsSync(old)).toBe(false)
  expect(existsSync(fresh)).toBe(true)
})

test("a missing root is nothing to do", () => {
  expect(() => removeOldSpills(join(root, "missing"), 7, now)).not.toThrow()
})
