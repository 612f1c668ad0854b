import { mkdirSync, symlinkSync } from "node:fs"
import { dirname, join } from "node:path"
import { expect, test } from "vitest"
import { createMachine, type Machine, tackleCommand } from "./run-tackle.ts"

const withoutTackle = { PATH: "/usr/bin:/bin" }
const shell: [string] = ["/bin/sh"]

/** Returns the commands that a text tells the user to run. */
function commandsIn(text: string): string[] {
  const marked = [...text.matchAll(/`([^`]+)`/g), ...text.matchAll(/(?:continue with|To \w+ it): (.+)/g)]
  return marked.map(([, command = ""]) => command.replace("…", "hello"))
}

/** Runs a command of a hint in the user's shell. */
async function follow(machine: Machine, command: string, env?: Record<string, string>) {
  return machine.run(["-c", command], { command: shell, cwd: machine.home, env })
}

test.each([
  ["an absolute path", tackleCommand, withoutTackle],
  ["the PATH", "tackle", {}],
])("names commands that work with --dir and %s", async (_, program, env) => {
  const machine = await createMachine({
    files: { "sub dir/tackle.json": "{}", "sub dir/.tackle/agent/a.md": "---\ndescription: A\n---\nA" },
    script: () => ({ text: "Yes." }),
  })
  const at = { command: [program] as [string], cwd: machine.home, env }
  const dir = ["--dir", machine.project.path("sub dir")]
  const run = await machine.run(["run", ...dir, "hi"], at)
  const commands = commandsIn(run.stderr)
  expect(commands).toHaveLength(2)
  for (const command of commands) expect(command).toContain(` --dir '${machine.project.path("sub dir")}'`)
  const [trust = "", again = ""] = commands
  expect((await follow(machine, `${trust} --yes`, env)).code).toBe(0)
  const continued = await follow(machine, again, env)
  expect(continued).toMatchObject({ code: 0, stdout: "Yes.\n" })
  expect(continued.stderr).not.toContain("not trusted")
  expect(continued.stderr).toMatch(/^continuing session ses_\w+ · hi$/m)

  const held = await machine.run(["send", ...dir, "--no-run", "more"], at)
  const [deliver = ""] = commandsIn(held.stdout)
  expect(deliver).toContain(` queue resume --dir '${machine.project.path("sub dir")}' -s ses_`)
  expect(await follow(machine, deliver, env)).toMatchObject({ code: 0, stdout: "Yes.\n" })

  const unknown = await machine.run(["run", ...dir, "-s", "ses_none", "hi"], at)
  for (const command of commandsIn(unknown.stderr)) expect((await follow(machine, command, env)).code).toBe(0)
})

test("names a program near the current directory by its relative path, and through npx by npx", async () => {
  const machine = await createMachine({ script: () => ({ text: "Yes." }) })
  const run = (env: Record<string, string>) =>
    machine.run(["run", "hi"], { command: [tackleCommand], cwd: join(dirname(tackleCommand), "../src"), env })
  expect((await run(withoutTackle)).stderr).toMatch(/^continue with: \.\.\/bin\/tackle run -s /m)
  expect((await run({ npm_command: "exec" })).stderr).toMatch(/^continue with: npx tackle run -s /m)
  mkdirSync(join(machine.home, "bin"))
  symlinkSync(tackleCommand, join(machine.home, "bin/tackle"))
  const linked = { PATH: `${join(machine.home, "bin")}:/usr/bin:/bin` }
  expect((await run(linked)).stderr).toMatch(/^continue with: tackle run -s /m)
})
