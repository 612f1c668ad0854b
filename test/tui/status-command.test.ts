import { mkdtemp, readFile, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect, onTestFinished, test } from "vitest"
import { createStatusCommand, type StatusInput } from "../../src/tui/status-command.ts"
import { until } from "../cli/run-tackle.ts"

const input: StatusInput = {
  ...{ agent: "build", directory: "/w", isRunning: false, cost: 0, columns: 80 },
  context: { tokens: 1_000, share: 0.5 },
}

/** Starts a status command that runs a script of Node. */
function start(script: string, ...args: string[]) {
  const problems: string[] = []
  let changes = 0
  const command = createStatusCommand({
    command: [process.execPath, "-e", script, ...args],
    onLine: () => {
      changes += 1
    },
    onProblem: (message) => problems.push(message),
  })
  onTestFinished(() => command.close())
  return { command, problems, changes: () => changes }
}

const readAll = `const data = JSON.parse(require("node:fs").readFileSync(0, "utf8"));`

test("passes the values as JSON, and shows the first line with its styles only", async () => {
  const { command, problems } = start(
    `${readAll} console.log("\\n\\x1b[31m" + data.agent + "\\x1b[2J\\x1b]0;title\\x07\\x1b[0m " + data.context.share + "\\x07\\u202e\\nmore")`,
  )
  command.update(input)
  await until("a line", () => command.line !== undefined)
  expect(command.line).toBe("\u001b[31mbuild\u001b[0m 0.5<U+202E>\u001b[0m")
  expect(problems).toEqual([])
})

test("runs only after a change, and joins changes that follow each other quickly", async () => {
  const place = await mkdtemp(join(tmpdir(), "tackle-status-"))
  onTestFinished(() => rm(place, { recursive: true }))
  const log = join(place, "log")
  const { command } = start(
    `${readAll} require("node:fs").appendFileSync(process.argv[1], data.cost + " "); console.log(data.cost)`,
    log,
  )
  for (let cost = 0; cost < 20; cost += 1) command.update({ ...input, cost })
  command.update({ ...input, cost: 19 })
  await until("the last value", () => command.line?.startsWith("19") === true)
  expect(await readFile(log, "utf8")).toBe("0 19 ")
})

test("keeps the last line and reports one problem if the command fails, runs too long, or is missing", async () => {
  const { command, problems, changes } = start(
    `${readAll} if (data.cost === 1) process.exit(3); if (data.cost === 2) setTimeout(() => {}, 60_000); else console.log("fine " + data.cost)`,
  )
  for (const cost of [0, 1, 2, 3]) {
    command.update({ ...input, cost })
    if (cost === 0 || cost === 3) await until("a line", () => command.line?.includes(`fine ${cost}`) === true)
    else if (cost === 1) await until("a problem", () => problems.length === 1)
    expect(command.line).toContain("fine")
  }
  expect(problems).toEqual([expect.stringContaining("The status_line command failed")])
  expect(changes()).toBe(2)
  const missing = createStatusCommand({
    command: ["/nowhere/status"],
    onLine() {},
    onProblem: (text) => problems.push(text),
  })
  missing.update(input)
  await until("a problem", () => problems.length === 2)
  expect(problems[1]).toContain("/nowhere/status")
})
