import { appendFileSync, cpSync, mkdirSync, writeFileSync } from "node:fs"
import { resolve } from "node:path"
import { expect, test } from "vitest"
import type { ScriptedCall } from "../../src/testing/reply.ts"
import { createMachine, type Machine, type MachineOptions } from "../cli/run-tackle.ts"

const example = resolve(import.meta.dirname, "../../examples/plugin")
const push = ["tool", "call", "bash", '{"command":"git push origin main"}', "--allow", "bash:*"]

test("runs no plugin of a project before it is trusted or after it changed", async () => {
  const machine = await openExample()
  const before = await machine.run(["tool", "list"])
  expect(before.stdout).not.toContain("stopwatch")
  expect(before.stderr).toContain(".tackle/plugin/stopwatch.ts")

  const shown = await machine.run(["trust", "--list"])
  expect(shown.stdout).toContain("code that runs with your permissions, as a plugin")
  await machine.trust()
  expect((await machine.run(["tool", "list"])).stdout).toMatch(/^stopwatch /m)

  appendFileSync(machine.project.path(".tackle/plugin/stopwatch.ts"), "\n// changed\n")
  const changed = await machine.run(["tool", "list"])
  expect(changed.stdout).not.toContain("stopwatch")
  expect(changed.stderr).toContain(".tackle/plugin/stopwatch.ts")
  // The other one is as it was.
  expect((await machine.run(push)).stderr).toContain("pull request alone")
})

test("blocks a call with the name of the plugin, changes another, and sets the variable for commands", async () => {
  const machine = await openExample()
  await machine.trust()
  const blocked = await machine.run(push)
  expect(blocked.code).not.toBe(0)
  expect(blocked.stderr).toMatch(/house-rules\.ts blocked this call: main and release/)

  const bash = (command: string) =>
    machine.run(["tool", "call", "bash", JSON.stringify({ command }), "--allow", "bash:*"])
  expect((await bash("echo CI=$CI")).stdout).toContain("CI=1")
  expect((await bash("npm test")).stdout).not.toContain("pull request")
})

test("calls the hooks of a whole run, including failures", async () => {
  const first: ScriptedCall[] = [
    { name: "read", arguments: { filePath: "README.md" } },
    { name: "read", arguments: { filePath: "none.md" } },
  ]
  const machine = await openExample({
    config: {},
    script: [{ calls: first }, { calls: [{ name: "stopwatch", arguments: {} }] }, { text: "Done." }],
  })
  await machine.trust()
  expect(await machine.run(["run", "read, then say how often"])).toMatchObject({ code: 0, stdout: "Done.\n" })
  const results = machine.server.requests[2]?.body.messages.filter(({ role }) => role === "tool")
  expect(results?.at(-1)?.content).toBe("read: 2 called, 1 failed")
})

test("asks to install a missing package of the user's config, and loads an installed one", async () => {
  const machine = await createMachine({ config: { plugin: [["greeter@1.0.0", { word: "Hail" }]] } })
  const missing = await machine.run(["tool", "list"])
  expect(missing).toMatchObject({ code: 0, stderr: expect.stringContaining("greeter is not installed") })
  const directory = /--prefix (\S+) greeter@1\.0\.0/.exec(missing.stderr)?.[1] ?? ""
  const installed = resolve(directory, "node_modules/greeter")
  mkdirSync(installed, { recursive: true })
  writeFileSync(
    resolve(installed, "package.json"),
    '{ "name": "greeter", "type": "module", "main": "./greeter.ts" }',
  )
  writeFileSync(resolve(installed, "greeter.ts"), greeter)
  const call = await machine.run(["tool", "call", "greet", "{}", "--allow", "greet:*"])
  expect(call).toMatchObject({ code: 0, stdout: "Hail\n" })
})

/** A plugin as a package in TypeScript. */
const greeter = `
import { type Plugin, tool } from "tackle/plugin"
export const Greeter: Plugin = async (_, options) => ({
  tool: { greet: tool({ description: "Says hello", args: {}, execute: async () => String(options?.word) }) },
})
`

async function openExample(options: MachineOptions = { config: null }): Promise<Machine> {
  const machine = await createMachine(options)
  cpSync(example, machine.project.directory, { recursive: true })
  return machine
}
