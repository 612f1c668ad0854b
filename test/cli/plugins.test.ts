import { symlink } from "node:fs/promises"
import { join } from "node:path"
import { expect, test } from "vitest"
import { createMachine, useOwnProcesses } from "./run-tackle.ts"

/** A module that shows on stderr that it ran. */
const loud = 'console.error("IT RAN"); export default async () => ({})'
const packageOf = (directory: string) => ({
  [`${directory}/node_modules/loud/package.json`]: '{ "name": "loud", "type": "module", "main": "i.js" }',
  [`${directory}/node_modules/loud/i.js`]: loud,
})

test("never takes a package that the user names from a project", async () => {
  const machine = await createMachine({ config: { plugin: ["loud"] } })
  for (const directory of [".tackle", "."])
    for (const [name, text] of Object.entries(packageOf(directory))) await machine.project.write(name, text)
  const { stderr } = await machine.run(["tool", "list", "--trust"])
  expect(stderr).toContain("loud is not installed")
  expect(stderr).not.toContain("IT RAN")
})

test("takes a package that a project names from the project, once its config is trusted", async () => {
  const machine = await createMachine({ config: null })
  await machine.project.write("tackle.json", '{ "plugin": ["loud"] }')
  for (const [name, text] of Object.entries(packageOf(".tackle"))) await machine.project.write(name, text)
  const before = await machine.run(["tool", "list"])
  expect(before.stderr).toContain("tackle.json: plugin")
  expect(before.stderr).not.toContain("IT RAN")
  expect((await machine.run(["trust", "--list"])).stdout).toContain("code that runs with your permissions")
  expect((await machine.run(["trust", "--yes"])).stdout).toContain("Trusted npm:loud.")
  expect((await machine.run(["tool", "list"])).stderr).toContain("IT RAN")
})

test("runs a project's package only with the trusted content of all its files", async () => {
  const machine = await createMachine({ config: null })
  const directory = ".tackle/node_modules/loud"
  await machine.project.write("tackle.json", '{ "plugin": ["loud@^1"] }')
  await machine.project.write(
    `${directory}/package.json`,
    '{ "name": "loud", "type": "module", "main": "i.js" }',
  )
  await machine.project.write(`${directory}/i.js`, 'import "./deep/own.js"\nexport default async () => ({})')
  await machine.project.write(`${directory}/deep/own.js`, 'console.error("IT RAN")')
  await machine.trust()
  expect((await machine.run(["tool", "list"])).stderr).toContain("IT RAN")

  await machine.project.write(`${directory}/deep/own.js`, 'console.error("IT RAN OTHERWISE")')
  const after = await machine.run(["tool", "list"])
  expect(after.stderr).toContain("the installed version of the package is not trusted")
  expect(after.stderr).not.toContain("IT RAN")
  const listed = JSON.parse((await machine.run(["trust", "--list", "--format", "json"])).stdout)
  expect(listed.items.map(({ path, state }: Record<string, string>) => [path, state])).toEqual([
    ["npm:loud", "changed"],
    ["tackle.json", "trusted"],
  ])
  await machine.run(["trust", "--yes", "npm:loud"])
  expect((await machine.run(["tool", "list"])).stderr).toContain("IT RAN OTHERWISE")
})

test("checks the dependencies of a package against the trusted content, before and while it runs", async () => {
  useOwnProcesses()
  const machine = await createMachine({ config: null })
  const write = (file: string, text: string) => machine.project.write(`.tackle/node_modules/${file}`, text)
  await machine.project.write("tackle.json", '{ "plugin": ["loud"] }')
  await write("loud/package.json", '{ "name": "loud", "main": "i.mjs", "dependencies": { "one": "1" } }')
  await write(
    "loud/i.mjs",
    `import "one"
     import { writeFileSync } from "node:fs"
     export default async () => {
       if (process.env.MEDDLE === undefined) return {}
       for (const file of ["late.cjs", "new.mjs"]) {
         writeFileSync(new URL("../one/" + file, import.meta.url), "console.error('MEDDLED')")
         await import("one/" + file).catch(({ message }) => console.error(message))
       }
       return {}
     }`,
  )
  await write("one/package.json", '{ "name": "one", "main": "i.cjs", "dependencies": { "two": "1" } }')
  await write("one/i.cjs", 'require("two")')
  await write("one/late.cjs", "")
  await write("one/README.md", "one")
  await write("two/package.json", '{ "name": "two", "main": "i.cjs" }')
  await write("two/i.cjs", 'console.error("TWO RAN")')
  const trusted = await machine.run(["trust", "--yes"])
  expect(trusted.stdout).toContain(
    "with 2 packages that it depends on, in the versions that are installed now",
  )
  expect((await machine.run(["tool", "list"])).stderr).toContain("TWO RAN")

  await write("one/README.md", "no code")
  await write("two/i.cjs", 'console.error("TWO RAN OTHERWISE")')
  const after = await machine.run(["tool", "list"])
  expect(after.stderr).toContain("the installed version of the package is not trusted")
  expect(after.stderr).not.toContain("TWO RAN")
  await write("two/i.cjs", 'console.error("TWO RAN")')
  expect((await machine.run(["tool", "list"])).stderr).toContain("TWO RAN")

  const meddled = await machine.run(["tool", "list"], { env: { MEDDLE: "1" } })
  expect(meddled.stderr).toContain("late.cjs has changed since it was trusted")
  expect(meddled.stderr).toContain("new.mjs was added after its package was trusted")
  expect(meddled.stderr).not.toContain("MEDDLED")
})

test("does not run a plugin path that leads through a link back into the project", async () => {
  const machine = await createMachine({ config: null })
  const way = join(machine.home, "way")
  await symlink(machine.project.directory, way)
  await machine.project.write("tackle.json", JSON.stringify({ plugin: [join(way, "lib/loud.js")] }))
  await machine.project.write("lib/loud.js", loud)
  await machine.trust()
  const { stderr } = await machine.run(["tool", "list"])
  expect(stderr).toContain("only plugins in the plugin/ and plugins/ directories")
  expect(stderr).not.toContain("IT RAN")
})

test("runs a path from the project's config only in a folder that trust covers", async () => {
  const machine = await createMachine({ config: null })
  await machine.project.write("tackle.json", '{ "plugin": ["./lib/loud.js"] }')
  await machine.project.write("lib/loud.js", loud)
  await machine.trust()
  const { stderr } = await machine.run(["tool", "list"])
  expect(stderr).toContain("only plugins in the plugin/ and plugins/ directories")
  expect(stderr).not.toContain("IT RAN")
})

test("keeps the output of a plugin out of the output of a command", async () => {
  const machine = await createMachine({ config: null })
  await machine.project.write(
    ".tackle/plugin/talks.js",
    'console.log("TALK"); export default async () => { console.log("TALK"); return {} }',
  )
  const { stdout, stderr } = await machine.run(["tool", "list", "--trust", "--format", "json"])
  expect(JSON.parse(stdout)).toBeTruthy()
  expect(stderr).toContain("TALK")
})

test("says why a plugin path from the project's config is not used", async () => {
  const machine = await createMachine({ config: null })
  await machine.project.write(
    "tackle.json",
    '{ "plugin": ["./.tackle/plugin/loud.js", "./.tackle/plugin/gone.js"] }',
  )
  await machine.project.write(".tackle/plugin/loud.js", loud)
  await machine.run(["trust", "--yes", "tackle.json"])
  const { stderr } = await machine.run(["tool", "list"])
  expect(stderr).toMatch(/plugin\/loud\.js: the file is not trusted\. Run `tackle trust`/)
  expect(stderr).toMatch(/plugin\/gone\.js: the file does not exist\./)
  expect(stderr).not.toContain("IT RAN")
})
