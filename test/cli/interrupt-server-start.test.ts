import { existsSync } from "node:fs"
import { readFile } from "node:fs/promises"
import { join } from "node:path"
import { expect, test } from "vitest"
import { readProcess } from "../../src/util/process-table.ts"
import { createMachine } from "./run-tackle.ts"

/** A server that writes down its process id and never answers. */
const silent =
  'require("fs").writeFileSync(process.argv[1], String(process.pid)); setInterval(() => {}, 1000)'

test.skipIf(process.platform !== "linux").each([
  ["tool list", ["tool", "list"]],
  ["tool schema", ["tool", "schema", "read"]],
  ["tool call", ["tool", "call", "read", '{"filePath":"a.txt"}']],
  ["mcp list", ["mcp", "list"]],
])("ends %s and a starting server on Ctrl+C", async (_, args) => {
  const machine = await createMachine({ files: { "a.txt": "x\n" } })
  const note = join(machine.home, "server.pid")
  const server = { type: "local", command: [process.execPath, "-e", silent, note] }
  const env = { TACKLE_CONFIG_CONTENT: JSON.stringify({ mcp: { server } }) }
  const { child, ended } = machine.start(args, { env })
  await expect.poll(() => existsSync(note) && readFile(note, "utf8"), { timeout: 20_000 }).toMatch(/^\d+$/)
  const pid = Number(await readFile(note, "utf8"))
  child.kill("SIGINT")
  expect(await ended).toMatchObject({ code: 130, signal: null, stdout: "", stderr: "" })
  expect(readProcess(pid)?.alive ?? false).toBe(false)
})
