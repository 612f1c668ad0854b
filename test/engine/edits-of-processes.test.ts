import { spawn } from "node:child_process"
import { once } from "node:events"
import { expect, onTestFinished, test } from "vitest"
import { temporaryProject } from "../../src/testing/project.ts"
import { processScript } from "../process-scripts.ts"
import { isComplete } from "../runs.ts"

/** Number of edits of each process. */
const count = isComplete ? 100 : 40

/** Starts a process that makes many edits. See `edit-process.ts`. */
function startEdits(directory: string, name: string, tool: string) {
  const argv = [processScript("test/engine/edit-process"), directory, name, String(count), tool]
  const child = spawn(process.execPath, argv, { stdio: ["ignore", "ignore", "inherit"] })
  onTestFinished(() => {
    child.kill("SIGKILL")
  })
  return child
}

test.each(["edit", "apply_patch"])(
  "loses no %s of two processes that change different lines",
  async (tool) => {
    const lines = Array.from({ length: count }, (_, index) => [`a${index}: open`, `b${index}: open`]).flat()
    const project = await temporaryProject({ "list.txt": `${lines.join("\n")}\n` })
    onTestFinished(project.remove)
    const ends = ["a", "b"].map((name) => once(startEdits(project.directory, name, tool), "exit"))
    expect(await Promise.all(ends)).toEqual([
      [0, null],
      [0, null],
    ])
    expect(await project.read("list.txt")).toBe(`${lines.join("\n").replaceAll("open", "done")}\n`)
  },
)

test("continues to edit after a process is killed in the middle of its edits", async () => {
  const lines = Array.from({ length: count }, (_, index) => [`a${index}: open`, `b${index}: open`]).flat()
  const project = await temporaryProject({ "list.txt": `${lines.join("\n")}\n` })
  onTestFinished(project.remove)
  const killed = startEdits(project.directory, "a", "edit")
  while (!(await project.read("list.txt")).includes("a5: done"))
    await new Promise((next) => setTimeout(next, 5))
  killed.kill("SIGKILL")
  await once(killed, "exit")
  expect(await once(startEdits(project.directory, "b", "edit"), "exit")).toEqual([0, null])
  expect(await project.read("list.txt")).not.toMatch(/b\d+: open/)
}, 120_000)
