import { cpSync, existsSync, readFileSync } from "node:fs"
import { resolve } from "node:path"
import { expect, test } from "vitest"
import type { ScriptedCall } from "../../src/testing/reply.ts"
import { createMachine, type Machine, type MachineOptions } from "../cli/run-tackle.ts"

const example = resolve(import.meta.dirname, "../../examples/custom-tool")

test("ignores the project before it is trusted", async () => {
  const machine = await openExample()
  const before = await machine.run(["tool", "list"])
  expect(before.stdout).not.toContain("count")
  expect(before.stderr).toContain(".tackle/tool/count.ts")
  expect(await machine.run(["trust", "--yes"])).toMatchObject({ code: 0 })
  const after = await machine.run(["tool", "list"])
  expect(after.stderr).toBe("")
  for (const id of ["count", "count_longest", "release"])
    expect(after.stdout).toMatch(new RegExp(`^${id} `, "m"))
})

test("the tools return what the page says", async () => {
  const machine = await openExample()
  await machine.trust()
  const call = (tool: string, input: object, ...flags: string[]) =>
    machine.run(["tool", "call", tool, JSON.stringify(input), ...flags])

  expect(await call("count", { file: "notes.txt" })).toMatchObject({ code: 0, stdout: "9 words\n" })
  expect(await call("count_longest", { file: "notes.txt" })).toMatchObject({ code: 0, stdout: "plumber\n" })
  // The tool asks like read: outside the project the user decides, whatever the rule for the tool.
  expect(await call("count", { file: "/etc/hosts" })).toMatchObject({ code: 3, stdout: "" })

  expect(await call("release", { version: "1.2.0" })).toMatchObject({ code: 3 })
  expect(await call("release", { version: "0.2.0" }, "--auto")).toMatchObject({ code: 3 })
  expect(await call("release", { version: "next" }, "--auto")).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("three numbers with dots"),
  })
  expect(existsSync(machine.project.path("RELEASES"))).toBe(false)
  const released = await call("release", { version: "1.2.0" }, "--allow", "release:1.*")
  expect(released).toMatchObject({ code: 0, stdout: "Released 1.2.0: build, test, upload.\n" })
  expect(readFileSync(machine.project.path("RELEASES"), "utf8")).toBe("1.2.0\n")
})

test("offers the tools to a model and returns their results", async () => {
  const calls: ScriptedCall[] = [
    { name: "count", arguments: { file: "notes.txt" } },
    { name: "release", arguments: { version: "1.2.0", dryRun: true } },
  ]
  const machine = await openExample({ config: {}, script: [{ calls }, { text: "Done." }] })
  await machine.trust()
  const { code, stdout } = await machine.run(["run", "--auto", "count, then release"])
  expect({ code, stdout }).toEqual({ code: 0, stdout: "Done.\n" })

  const [first, second] = machine.server.requests
  expect(first?.body.tools?.map((tool) => tool.function.name)).toContain("count_longest")
  const results = second?.body.messages.filter(({ role }) => role === "tool").map(({ content }) => content)
  expect(results).toEqual(["9 words", "Would release 1.2.0: build, test, upload."])
})

async function openExample(options: MachineOptions = { config: null }): Promise<Machine> {
  const machine = await createMachine(options)
  cpSync(example, machine.project.directory, { recursive: true })
  return machine
}
