import { execFileSync } from "node:child_process"
import { readFileSync, writeFileSync } from "node:fs"
import { resolve } from "node:path"
import { expect, test } from "vitest"
import { createLog } from "../../src/cli/process/log.ts"
import { temporaryProject } from "../../src/testing/project.ts"

const linesOf = (path: string | undefined) =>
  readFileSync(String(path), "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line))

test("writes entries in order, and an error immediately with those before it", async () => {
  const project = await temporaryProject()
  const log = createLog({ directory: project.path("logs") })
  log.write("info", "one", { n: 1 })
  // A field of the same name does not take the message's place.
  log.write("error", "two", { message: "other" })
  expect(linesOf(log.path)).toMatchObject([
    { level: "info", message: "one", n: 1, pid: process.pid },
    { level: "error", message: "two" },
  ])
  log.write("info", "three")
  await expect.poll(() => linesOf(log.path).map(({ message }) => message)).toEqual(["one", "two", "three"])
  await project.remove()
})

test("writes the entries of a process that exits immediately", async () => {
  const project = await temporaryProject()
  const program = `
    import { createLog } from ${JSON.stringify(resolve(import.meta.dirname, "../../src/cli/process/log.ts"))}
    const log = createLog({ directory: ${JSON.stringify(project.path("logs"))} })
    log.write("info", "last words")
    process.stdout.write(log.path)
    process.exit(0)`
  writeFileSync(project.path("leave.mjs"), program)
  const path = execFileSync(process.execPath, [project.path("leave.mjs")], { encoding: "utf8" })
  expect(linesOf(path)).toMatchObject([{ message: "last words" }])
  await project.remove()
})

test("replaces fields that are not JSON and keeps the other entries", async () => {
  const project = await temporaryProject()
  const log = createLog({ directory: project.path("logs") })
  log.write("info", "one")
  log.write("info", "two", { n: 1n })
  log.write("error", "three")
  expect(linesOf(log.path)).toMatchObject([
    { message: "one" },
    { message: "two", unwritable: expect.stringContaining("BigInt") },
    { message: "three" },
  ])
  await project.remove()
})

test("reports an unwritable directory once and disables the file", async () => {
  const project = await temporaryProject({ logs: "a file" })
  const told: string[] = []
  const log = createLog({ directory: project.path("logs"), echo: (line) => told.push(line) })
  log.write("error", "one")
  log.write("error", "two")
  expect(log.path).toBeUndefined()
  expect(told.filter((line) => line.includes("cannot write the log file"))).toHaveLength(1)
  await project.remove()
})
