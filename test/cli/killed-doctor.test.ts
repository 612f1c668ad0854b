import { existsSync, readdirSync, readFileSync } from "node:fs"
import { readdir } from "node:fs/promises"
import { join } from "node:path"
import { expect, test } from "vitest"
import { describeSandboxed } from "../sandbox/support.ts"
import { createMachine, until } from "./run-tackle.ts"

await describeSandboxed("doctor", () => {
  test("leaves only processes that its next start ends, if it is killed during its checks", async () => {
    const machine = await createMachine({ git: true })
    const temporary = machine.project.path("tmp")
    await machine.project.write("tmp/x", "")
    const started = machine.start(["doctor"], { env: { TMPDIR: temporary } })
    const records = join(machine.data, "processes")
    await until("the attempts run", () => beats(temporary).then((found) => found && existsSync(records)))
    expect((await readdir(records)).length).toBeGreaterThan(0)
    started.child.kill("SIGKILL")
    await started.ended
    expect(attempts(temporary)).not.toEqual([])

    await machine.run(["doctor"])
    expect(attempts(temporary)).toEqual([])
    expect(await readdir(records)).toEqual([])
  })
})

/** Returns the ids of the processes that the attempts below the directory started. */
function attempts(temporary: string): string[] {
  return readdirSync("/proc").filter((id) => {
    if (!/^\d+$/.test(id)) return false
    try {
      return readFileSync(`/proc/${id}/cmdline`, "utf8").includes(`${temporary}/tackle-probe-`)
    } catch {
      // The process has ended.
      return false
    }
  })
}

/** Returns true if the attempt that keeps running in the background has started. */
async function beats(temporary: string): Promise<boolean> {
  const [root] = (await readdir(temporary)).filter((name) => name.startsWith("tackle-probe-"))
  return root !== undefined && existsSync(join(temporary, root, "background/inside/beat"))
}
