import { spawn } from "node:child_process"
import { once } from "node:events"
import { openSync, readFileSync } from "node:fs"
import { resolve } from "node:path"
import { expect, test } from "vitest"
import { createMachine, type Machine, tackleCommand, until } from "./run-tackle.ts"

/** Runs a command whose standard output is a full disk. */
async function runFull(machine: Machine, args: readonly string[]) {
  const child = spawn(tackleCommand, args, {
    cwd: machine.project.directory,
    env: machine.env,
    stdio: ["ignore", openSync("/dev/full", "w"), "pipe"],
  })
  let stderr = ""
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    stderr += text
  })
  const [code, signal] = await once(child, "close")
  return { code, signal, stderr }
}

const message = "tackle: cannot write to standard output: the disk is full.\n"

test.skipIf(process.platform !== "linux")(
  "ends a run whose output cannot be written, with its children and its lease",
  async () => {
    const machine = await createMachine({
      config: { permission: { "*": "allow" }, sandbox: "off" },
      script: ({ body }) =>
        body.messages.findLast(({ role }) => role === "user")?.content === "more"
          ? { text: "Again." }
          : {
              calls: [
                {
                  name: "bash",
                  arguments: { command: "sleep 300 & echo $! > pid; wait", description: "Wait" },
                },
              ],
            },
    })
    const run = await runFull(machine, ["run", "--format", "json", "go"])
    expect(run).toEqual({ code: 1, signal: null, stderr: message })
    const pid = await machine.project.read("pid").catch(() => undefined)
    if (pid !== undefined) {
      const gone = () => {
        try {
          return /\) Z /.test(readFileSync(`/proc/${pid.trim()}/stat`, "utf8"))
        } catch {
          return true
        }
      }
      await until("the command to end", gone)
    }
    expect(await machine.run(["run", "-c", "more"])).toMatchObject({
      code: 0,
      stdout: expect.stringContaining("Again."),
    })
  },
)

test
  .skipIf(process.platform !== "linux")
  .each([[["session", "list", "--format", "json"]], [["config", "show"]], [["tool", "list"]]])(
  "fails with one line if the output of %j cannot be written",
  async (args) => {
    const machine = await createMachine({})
    expect(await runFull(machine, args)).toEqual({ code: 1, signal: null, stderr: message })
  },
)

test.skipIf(process.platform !== "linux")("reports a full disk, not a bug", async () => {
  const exit = resolve(import.meta.dirname, "../../src/cli/process/exit.ts")
  const code = `
    import { writeFileSync } from "node:fs"
    import { reportError } from ${JSON.stringify(exit)}
    try {
      writeFileSync("/dev/full", "x")
    } catch (error) {
      reportError(error, { verbose: false, takesVerbose: true })
    }`
  const child = spawn(process.execPath, ["--input-type=module", "-e", code], {
    stdio: ["ignore", "ignore", "pipe"],
  })
  let stderr = ""
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    stderr += text
  })
  expect(await once(child, "close")).toEqual([1, null])
  expect(stderr).toMatch(/^tackle: ENOSPC: .*\ntackle: Free some disk space, then try again\.\n$/)
})

test("help for a reader that ends early is not an error", async () => {
  const machine = await createMachine()
  const child = spawn("sh", ["-c", "(sleep 1; exec tackle run --help) | true"], {
    env: machine.env,
    stdio: ["ignore", "ignore", "pipe"],
  })
  let stderr = ""
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    stderr += text
  })
  await once(child, "close")
  expect(stderr).toBe("")
})
