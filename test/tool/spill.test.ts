import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, expect, test } from "vitest"
import { createFullText, createSpillOpener } from "../../src/tool/spill.ts"

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "spill-"))
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

test("the directory is made with the first file, and files are numbered", () => {
  const inner = join(directory, "a", "b")
  const open = createSpillOpener({ directory: inner, name: "x" })
  expect(existsSync(inner)).toBe(false)
  const files = [open(), open()]
  expect(files.map((file) => file.path)).toEqual([join(inner, "tool_x_1.txt"), join(inner, "tool_x_2.txt")])
  for (const file of files) file.close()
})

test("bytes and text are appended in order, and only the owner may read them", () => {
  const file = createSpillOpener({ directory, name: "x" })()
  file.write("grün ")
  file.write(Buffer.from([0xff, 0x0a]))
  file.close()
  expect(readFileSync(file.path)).toEqual(Buffer.concat([Buffer.from("grün "), Buffer.from([0xff, 0x0a])]))
  expect(file.bytes).toBe(8)
  expect(statSync(file.path).mode & 0o777).toBe(0o600)
})

test("at the limit the file ends, says so, and takes no more", () => {
  const file = createSpillOpener({ directory, name: "x", maxBytes: 10 })()
  file.write("12345678")
  expect(file.capped).toBe(false)
  file.write("90abc")
  file.write("def")
  file.close()
  expect(file.capped).toBe(true)
  expect(readFileSync(file.path, "utf8")).toBe(
    "1234567890\n[Truncated: this file reached its limit of 10 bytes.]\n",
  )
})

test("exactly the limit is not too much", () => {
  const file = createSpillOpener({ directory, name: "x", maxBytes: 4 })()
  file.write("1234")
  file.close()
  expect(file.capped).toBe(false)
  expect(readFileSync(file.path, "utf8")).toBe("1234")
})

test("after closing nothing is written and closing again is harmless", () => {
  const file = createSpillOpener({ directory, name: "x" })()
  file.close()
  file.write("late")
  file.close()
  expect(statSync(file.path).size).toBe(0)
})

// `/dev/full` opens as a file does and refuses every write as a full disk does.
test.runIf(existsSync("/dev/full"))("a full disk is thrown by the file, and a word of the full text", () => {
  symlinkSync("/dev/full", join(directory, "tool_x_1.txt"))
  const file = createSpillOpener({ directory, name: "x" })()
  expect(() => file.write("a")).toThrow("ENOSPC")
  file.close()

  const full = createFullText(createSpillOpener({ directory, name: "x" }))
  full.write("a")
  full.write("b")
  full.close()
  expect(full.problem).toContain("ENOSPC")
  expect(full.path).toBeUndefined()
})
