import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs"
import Module from "node:module"
import { tmpdir } from "node:os"
import { dirname, join, resolve } from "node:path"
import { Script } from "node:vm"
import { crc32 } from "node:zlib"
import { expect, onTestFinished, test } from "vitest"
import { createMachine, type Machine, tackleCommand } from "./run-tackle.ts"

/** Copies the built command, so that it has an empty cache. */
function copyCommand(): { root: string; command: [string] } {
  const root = mkdtempSync(join(tmpdir(), "tackle-code-"))
  onTestFinished(() => rmSync(root, { recursive: true, force: true, maxRetries: 3 }))
  const repository = resolve(dirname(tackleCommand), "..")
  cpSync(tackleCommand, join(root, "bin/tackle"))
  cpSync(join(repository, "dist/cli"), join(root, "dist/cli"), { recursive: true })
  symlinkSync(join(repository, "node_modules"), join(root, "node_modules"))
  return { root, command: [join(root, "bin/tackle")] }
}

/** Returns the files with compiled code, by the name of their file of the bundle. */
function storedCode(cache: string): Map<string, { path: string; content: Buffer }> {
  const names = readdirSync(cache, { recursive: true, encoding: "utf8" }).filter((name) =>
    name.endsWith(".code"),
  )
  return new Map(
    names.map((name) => {
      const path = join(cache, name)
      const [, chunk = ""] = /([^/]+)\.code$/.exec(name) ?? []
      return [chunk, { path, content: readFileSync(path) }]
    }),
  )
}

function codeOf(stored: ReturnType<typeof storedCode>, name: string) {
  const chunk = [...stored.keys()].find((each) => each.startsWith(`${name}-`))
  const found = chunk === undefined ? undefined : stored.get(chunk)
  if (chunk === undefined || !found) throw new Error(`There is no compiled code of ${name}.`)
  return { chunk, ...found }
}

async function runOnce(machine: Machine, command: [string], env = {}): Promise<void> {
  expect(await machine.run(["run", "hi"], { command, env })).toMatchObject({ code: 0, stdout: "Said.\n" })
}

test("stores the functions that the first runs called, and then keeps the stored code", async () => {
  const { root, command } = copyCommand()
  const machine = await createMachine({ script: () => ({ text: "Said." }) })
  await runOnce(machine, command)
  const first = codeOf(storedCode(join(root, "dist/.cache")), "start")
  const source = Module.wrap(readFileSync(join(root, "dist/cli", first.chunk), "latin1"))
  expect(first.content.length).toBeGreaterThan(1.5 * new Script(source).createCachedData().length)

  for (let run = 2; run <= 4; run++) await runOnce(machine, command)
  const fourth = storedCode(join(root, "dist/.cache"))
  expect(codeOf(fourth, "start").content.equals(first.content)).toBe(false)
  await runOnce(machine, command)
  expect(storedCode(join(root, "dist/.cache"))).toEqual(fourth)
})

test("removes code that was stored more than 90 days ago when a new build stores its code", async () => {
  const { root, command } = copyCommand()
  const machine = await createMachine({ script: () => ({ text: "Said." }) })
  await runOnce(machine, command)
  const cache = join(root, "dist/.cache")
  const build = dirname(codeOf(storedCode(cache), "start").path)
  const day = 24 * 3_600
  for (const [name, days] of [
    ["old-A.chunk.cjs.code", 91],
    ["recent-B.chunk.cjs.code", 89],
    ["other", 91],
  ] as const) {
    writeFileSync(join(build, name), "")
    const time = Date.now() / 1_000 - days * day
    utimesSync(join(build, name), time, time)
  }
  await runOnce(machine, command)
  expect(readdirSync(build)).toContain("old-A.chunk.cjs.code")
  rmSync(codeOf(storedCode(cache), "start").path)
  await runOnce(machine, command)
  expect(readdirSync(build)).not.toContain("old-A.chunk.cjs.code")
  expect(readdirSync(build)).toEqual(expect.arrayContaining(["recent-B.chunk.cjs.code", "other"]))
})

test("adds the functions of a run to those of earlier runs", async () => {
  const machine = await createMachine({ script: () => ({ text: "Said." }) })
  const sizeAfter = async (...runs: string[][]) => {
    const { root, command } = copyCommand()
    for (const args of runs) expect(await machine.run(args, { command })).toMatchObject({ code: 0 })
    return codeOf(storedCode(join(root, "dist/.cache")), "help").content.length
  }
  const [help, run] = [["help"], ["run", "hi"]]
  const separate = [await sizeAfter(help), await sizeAfter(run)]
  expect(await sizeAfter(help, run)).toBeGreaterThan(1.05 * Math.max(...separate))
})

test("keeps stored code that is larger than the code of a run", async () => {
  const { root, command } = copyCommand()
  const machine = await createMachine({ script: () => ({ text: "Said." }) })
  await runOnce(machine, command)
  const cache = join(root, "dist/.cache")
  const { chunk, path, content } = codeOf(storedCode(cache), "start")
  const larger = Buffer.concat([content, Buffer.alloc(1_000_000)])
  const source = readFileSync(join(root, "dist/cli", chunk), "latin1")
  larger.writeUInt32LE(crc32(larger.subarray(4), crc32(source)))
  writeFileSync(path, larger)
  await runOnce(machine, command)
  const kept = codeOf(storedCode(cache), "start").content
  expect(kept.readUInt32LE(4)).toBe(2)
  expect(kept.subarray(8).equals(larger.subarray(8))).toBe(true)
})

test("replaces damaged code", async () => {
  const { root, command } = copyCommand()
  const machine = await createMachine({ script: () => ({ text: "Said." }) })
  await runOnce(machine, command)
  const { path, content } = codeOf(storedCode(join(root, "dist/.cache")), "start")
  for (const damaged of [content.fill(0, content.length >> 1), content.subarray(0, 1000), Buffer.alloc(0)]) {
    writeFileSync(path, damaged)
    await runOnce(machine, command)
    expect(codeOf(storedCode(join(root, "dist/.cache")), "start").content.length).toBeGreaterThan(
      0.9 * content.length,
    )
  }
})

test("uses the data directory if the directory of the build cannot contain a cache", async () => {
  const { root, command } = copyCommand()
  writeFileSync(join(root, "dist/.cache"), "")
  const machine = await createMachine({ script: () => ({ text: "Said." }) })
  await runOnce(machine, command)
  await runOnce(machine, command)
  expect(codeOf(storedCode(join(machine.data, "compiled")), "start").content.length).toBeGreaterThan(1000)
})

test("leaves files of other programs to Node, whatever their extension", async () => {
  const { root, command } = copyCommand()
  const machine = await createMachine({ script: () => ({ text: "Said." }) })
  const plugins = join(machine.home, "config/tackle/plugin")
  mkdirSync(plugins, { recursive: true })
  const loaded = join(machine.home, "loaded")
  writeFileSync(join(plugins, "own.chunk.cjs"), 'exports.word = import("node:path").then(() => "Grüße")')
  writeFileSync(
    join(plugins, "own.ts"),
    `import { createRequire } from "node:module"
     import { writeFileSync } from "node:fs"
     export const Own = async () => {
       writeFileSync(${JSON.stringify(loaded)}, await createRequire(import.meta.url)("./own.chunk.cjs").word)
       return {}
     }`,
  )
  await runOnce(machine, command)
  expect(readFileSync(loaded, "utf8")).toBe("Grüße")
  expect([...storedCode(join(root, "dist/.cache")).keys()].join(" ")).not.toContain("own.chunk")
})

test("stores nothing for servers", async () => {
  const { root, command } = copyCommand()
  const machine = await createMachine()
  for (const server of ["serve", "web", "worker", "gateway", "mcp serve"])
    expect(await machine.run([...server.split(" "), "--help"], { command })).toMatchObject({ code: 0 })
  expect(storedCode(join(root, "dist/.cache"))).toEqual(new Map())
})

test("stores nothing if the compile cache is disabled", async () => {
  const { root, command } = copyCommand()
  const machine = await createMachine({ script: () => ({ text: "Said." }) })
  await runOnce(machine, command, { NODE_DISABLE_COMPILE_CACHE: "1" })
  expect(readdirSync(join(root, "dist"))).toEqual(["cli"])
})
