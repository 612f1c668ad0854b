import { execFile } from "node:child_process"
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join, resolve } from "node:path"
import { promisify } from "node:util"
import { afterEach, beforeEach, expect, test } from "vitest"

const loader = resolve(import.meta.dirname, "../../bin/load.cjs")
const execute = promisify(execFile)

let directory: string
let cache: string

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "tackle-load-"))
  cache = join(directory, "cache")
  write("main.cjs", 'require("./part-1.cjs").tell("one")')
  write("part-1.cjs", 'exports.tell = (what) => console.log("part tells", what)')
})

afterEach(() => rmSync(directory, { recursive: true, force: true }))

test("what ran is kept, but for the entry, and taken by the next run", async () => {
  expect((await run()).stdout).toBe("part tells one\n")
  expect(kept()).toEqual(["part-1.cjs.bin", "runs"])
  const first = statSync(keptFile("part-1.cjs")).mtimeMs
  // V8 knows a file by its length: what is told then comes from what was kept. Nothing was added, so it stays.
  write("part-1.cjs", 'exports.tell = (what) => console.log("PART TELLS", what)')
  write("main.cjs", 'require("./part-1.cjs").tell("two")')
  expect((await run()).stdout).toBe("part tells two\n")
  expect(statSync(keptFile("part-1.cjs")).mtimeMs).toBe(first)
})

test("what is kept holds the functions that were called; the first runs add theirs", async () => {
  const body = Array.from({ length: 200 }, (_, index) => `value += ${index} * value`).join(";")
  const called = Array.from({ length: 9 }, (_, index) => `f${index}`)
  write("part-1.cjs", called.map((name) => `exports.${name} = (value) => { ${body} }`).join("\n"))
  write("main.cjs", 'require("./part-1.cjs")[process.argv[2]](1)')
  const sizes: number[] = []
  for (const name of called) {
    await run({ args: [name] })
    sizes.push(statSync(keptFile("part-1.cjs")).size)
  }
  const grown = sizes.slice(1).map((size, index) => size - (sizes[index] ?? 0))
  expect(Math.min(...grown.slice(0, 7))).toBeGreaterThan(1000)
  expect(grown.at(7)).toBe(0)
})

test("a run with other options of Node keeps its own", async () => {
  await run()
  const first = statSync(keptFile("part-1.cjs")).mtimeMs
  expect((await run({ options: "--expose-gc" })).stdout).toBe("part tells one\n")
  expect(statSync(keptFile("part-1.cjs")).mtimeMs).toBe(first)
  expect(readdirSync(cache)).toHaveLength(2)
})

test("what V8 does not take is made anew", async () => {
  await run()
  const good = readFileSync(keptFile("part-1.cjs"))
  for (const bad of [Buffer.alloc(0), Buffer.from("no code"), good.subarray(0, good.length / 2)]) {
    writeFileSync(keptFile("part-1.cjs"), bad)
    expect(await run()).toEqual({ stdout: "part tells one\n", stderr: "" })
    expect(readFileSync(keptFile("part-1.cjs")).length).toBeGreaterThan(bad.length)
  }
})

test("without a place for it everything runs as well", async () => {
  writeFileSync(cache, "a file, and no folder")
  expect(await run()).toEqual({ stdout: "part tells one\n", stderr: "" })
})

test("where the bundle is gone by the end of the run, nothing is kept of it", async () => {
  write("part-1.cjs", 'exports.tell = () => require("fs").rmSync(process.argv[1].replace("start", "main"))')
  await run()
  expect(readdirSync(directory)).not.toContain("cache")
})

test("Node's own variable turns it off", async () => {
  await run({ env: { NODE_DISABLE_COMPILE_CACHE: "1" } })
  expect(readdirSync(directory)).not.toContain("cache")
})

test("a file that fails fails again for whoever asks again", async () => {
  write(
    "main.cjs",
    'for (const n of [1, 2]) try { require("./part-1.cjs") } catch (e) { console.log(e.message) }',
  )
  write("part-1.cjs", 'throw new Error("no")')
  expect((await run()).stdout).toBe("no\nno\n")
})

test("a file of the bundle is run once, finds others by name, and imports by the loader", async () => {
  mkdirSync(join(directory, "node_modules/other"), { recursive: true })
  write("node_modules/other/index.js", 'module.exports = "other"')
  write("main.cjs", 'require("./part-1.cjs"); require("./part-1.cjs"); require("./part-2.cjs")')
  write("part-1.cjs", 'console.log("once", require("other"), __filename.slice(__dirname.length))')
  write("part-2.cjs", 'importOther("node:path").then(({ sep }) => console.log("imported", sep))')
  expect((await run()).stdout).toBe("once other /part-1.cjs\nimported /\n")
})

test("an error names its place in the file", async () => {
  write("main.cjs", 'require("./part-1.cjs")')
  write("part-1.cjs", '"use strict"; throw new Error("no")\n')
  await expect(run()).rejects.toThrow(`${join(directory, "part-1.cjs")}:1:21`)
  write("part-1.cjs", '"use strict"\nthrow new Error("no")\n')
  await expect(run()).rejects.toThrow(`${join(directory, "part-1.cjs")}:2:7`)
})

function write(name: string, text: string): void {
  writeFileSync(join(directory, name), text)
}

function kept(): string[] {
  return readdirSync(dirname(keptFile("any"))).toSorted()
}

function keptFile(name: string): string {
  return join(cache, `${process.version}-${process.platform}-${process.arch}`, `${name}.bin`)
}

interface RunOptions {
  args?: string[]
  env?: Record<string, string>
  /** Node's own. */
  options?: string
}

/** Runs the entry as `bin/tackle` does: from a file, so that Node itself has no options. */
async function run({ args = [], env = {}, options = "" }: RunOptions = {}) {
  const entry = join(directory, "main.cjs")
  const start = join(directory, "start.cjs")
  writeFileSync(start, `require(${JSON.stringify(loader)}).runBundle(${JSON.stringify({ entry, cache })})`)
  const { NODE_OPTIONS: _, ...inherited } = process.env
  const given = options === "" ? {} : { NODE_OPTIONS: options }
  return await execute(process.execPath, [start, ...args], { env: { ...inherited, ...given, ...env } })
}
