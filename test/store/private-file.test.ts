import { spawn } from "node:child_process"
import { once } from "node:events"
import { readdir, readFile, stat } from "node:fs/promises"
import { join } from "node:path"
import { expect, onTestFinished, test } from "vitest"
import { updatePrivateFile } from "../../src/store/private-file.ts"
import { temporaryProject } from "../../src/testing/project.ts"
import { processScript } from "../process-scripts.ts"

async function directory(): Promise<string> {
  const project = await temporaryProject()
  onTestFinished(project.remove)
  return project.directory
}

test("keeps the writes of many concurrent processes", async () => {
  const data = await directory()
  const [writers, each] = [6, 15]
  const ends = Array.from({ length: writers }, (_, index) => {
    const argv = [processScript("test/store/private-file-writer"), data, `w${index}`, String(each)]
    return once(spawn(process.execPath, argv, { stdio: "inherit" }), "exit")
  })
  expect(await Promise.all(ends)).toEqual(Array(writers).fill([0, null]))

  const read = async (name: string) => JSON.parse(await readFile(join(data, name), "utf8"))
  expect(Object.keys(await read("mcp-auth.json"))).toHaveLength(writers * each)
  const pins = Object.values(await read("mcp-tools.json")) as object[]
  expect(pins.map((tools) => Object.keys(tools).length)).toEqual(Array(writers).fill(each))
  expect((await stat(join(data, "mcp-auth.json"))).mode & 0o777).toBe(0o600)
  const left = (await readdir(data)).sort()
  expect(left).toEqual(["mcp-auth.json", "mcp-auth.json.lock", "mcp-tools.json", "mcp-tools.json.lock"])
})

test("releases the lock and keeps the file after an error", async () => {
  const path = join(await directory(), "deep", "file.json")
  updatePrivateFile(path, "test", () => ({ a: 1 }))
  expect(() =>
    updatePrivateFile(path, "test", () => {
      throw new Error("no")
    }),
  ).toThrow(/^no$/)
  updatePrivateFile(path, "test", (now) => ({ ...(now as object), b: 2 }))
  expect(JSON.parse(await readFile(path, "utf8"))).toEqual({ a: 1, b: 2 })
})

test.each([
  ["ENOSPC", "Free some disk space, then try again."],
  ["EDQUOT", "Delete files that are not needed, then try again."],
  ["EACCES", "Check the permissions of its directory."],
])("after %s, the error says: %s", async (code, advice) => {
  const path = join(await directory(), "file.json")
  const value = {
    toJSON() {
      throw Object.assign(new Error(`${code}: write`), { code })
    },
  }
  expect(() => updatePrivateFile(path, "test", () => value)).toThrow(
    `${path} cannot be written (${code}: write). ${advice}`,
  )
})
