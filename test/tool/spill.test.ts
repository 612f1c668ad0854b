import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, expect, test } from "vitest"
import { createFullText, createSpillOpener, spillName } from "../../src/tool/spill.ts"
import { startEngine } from "../session/engine.ts"
import { tool } from "../session/run.ts"

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "spill-"))
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

test("creates the directory with the first file and numbers the files", () => {
  const inner = join(directory, "a", "b")
  const open = createSpillOpener({ directory: inner, name: "x" })
  expect(existsSync(inner)).toBe(false)
  const files = [open(), open()]
  expect(files.map((file) => file.path)).toEqual([join(inner, "tool_x_1.txt"), join(inner, "tool_x_2.txt")])
  for (const file of files) file.close()
})

test("appends bytes and text in order; only the owner can read them", () => {
  const file = createSpillOpener({ directory, name: "x" })()
  file.write("grün ")
  file.write(Buffer.from([0xff, 0x0a]))
  file.close()
  expect(readFileSync(file.path)).toEqual(Buffer.concat([Buffer.from("grün "), Buffer.from([0xff, 0x0a])]))
  expect(file.bytes).toBe(8)
  expect(statSync(file.path).mode & 0o777).toBe(0o600)
})

test("ends the file at the limit with a note", () => {
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

test("accepts exactly the limit", () => {
  const file = createSpillOpener({ directory, name: "x", maxBytes: 4 })()
  file.write("1234")
  file.close()
  expect(file.capped).toBe(false)
  expect(readFileSync(file.path, "utf8")).toBe("1234")
})

test("writes nothing after close; close can be repeated", () => {
  const file = createSpillOpener({ directory, name: "x" })()
  file.close()
  file.write("late")
  file.close()
  expect(statSync(file.path).size).toBe(0)
})

// `/dev/full` rejects every write like a full disk.
test.runIf(existsSync("/dev/full"))("throws on a full disk; the full text reports it", () => {
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

test("is named after the tool and the call, in the directory of the session", async () => {
  const long = tool("long-er", async () => ({ title: "", output: "line\n".repeat(3000) }))
  await using engine = await startEngine([], { tools: [long], permission: { "*": "allow" } })
  const { state } = await engine.tackle.callTool({ tool: long.id, input: "{}" })
  expect(state.metadata?.outputPath).toMatch(/\/truncate\/ses_[^/]+\/tool_long-er_prt_[^/]+_1\.txt$/)
  expect(spillName("a/../b", "x:y")).toBe("a____b_x_y")
})
