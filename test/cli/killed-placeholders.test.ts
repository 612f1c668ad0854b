import { existsSync } from "node:fs"
import { readdir, writeFile } from "node:fs/promises"
import { expect, test } from "vitest"
import { describeSandboxed } from "../sandbox/support.ts"
import { createMachine, type Machine, type Started, until } from "./run-tackle.ts"

/** A machine whose model runs the prompt as a command and then ends. The project has no `.git`. */
function createCommandMachine(): Promise<Machine> {
  return createMachine({
    script: ({ body }) => {
      if (body.messages.some(({ role }) => role === "tool")) return { text: "Done." }
      const command = body.messages.findLast(({ role }) => role === "user")?.content
      return { calls: [{ name: "bash", arguments: { command, description: "Do it" } }] }
    },
    config: { sandbox: "require" },
  })
}

async function startCommand(machine: Machine, name: string, command: string): Promise<Started> {
  const run = machine.start(["run", "--auto", `touch ${name}; ${command}`])
  await until(`${name} runs`, () => existsSync(machine.project.path(name)))
  return run
}

async function kill(run: Started): Promise<void> {
  run.child.kill("SIGKILL")
  await run.ended
}

await describeSandboxed("placeholders of a killed run", () => {
  test("are removed by the next start, except those that have content", async () => {
    const machine = await createCommandMachine()
    const { project } = machine
    await kill(await startCommand(machine, "first", "sleep 300"))
    expect((await readdir(project.directory)).sort()).toEqual([".git", ".tackle", "first"])
    await writeFile(project.path(".tackle/tackle.json"), "{}")

    expect(await machine.run(["session", "list"])).toMatchObject({ code: 0, stderr: "" })
    expect((await readdir(project.directory)).sort()).toEqual([".tackle", "first"])
    expect(await readdir(project.path(".tackle"))).toEqual(["tackle.json"])
    expect(await readdir(`${machine.data}/placeholders`)).toEqual([])
  })

  test("stay while another run uses them, and are removed with it", async () => {
    const machine = await createCommandMachine()
    const { project } = machine
    const killed = await startCommand(machine, "first", "sleep 300")
    // The commands are in a file so that no rule matches them.
    const script = "until [ -e go ]; do sleep 0.05; done; mkdir -p .git/hooks || echo kept > said\n"
    await writeFile(project.path("script"), script)
    const other = await startCommand(machine, "second", "sh script")
    await kill(killed)
    expect(await machine.run(["session", "list"])).toMatchObject({ code: 0, stderr: "" })
    expect((await readdir(project.directory)).sort()).toEqual([
      ".git",
      ".tackle",
      "first",
      "script",
      "second",
    ])

    await writeFile(project.path("go"), "")
    expect(await other.ended).toMatchObject({ code: 0 })
    expect(await project.read("said")).toBe("kept\n")
    expect((await readdir(project.directory)).sort()).toEqual(["first", "go", "said", "script", "second"])
    expect(await readdir(`${machine.data}/placeholders`)).toEqual([])
  })
})
