import { execFile } from "node:child_process"
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
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
  expect(kept()).toEqual(["part-1.cjs.bin"])
  const first = statSync(keptFile("part-1.cjs")).mtimeMs
  // V8 knows a file by its length: what is told then comes from what was kept.
  write("part-1.cjs", 'exports.tell = (what) => console.log("PART TELLS", what)')
  write("main.cjs", 'require("./part-1.cjs").tell("two")')
  expect((await run()).stdout).toBe("part tells two\n")
  expect(statSync(keptFile("part-1.cjs")).mtimeMs).toBe(first)
})

test("what is kept holds the functions that were called; a renewing run adds its own", async () => {
  const body = Array.from({ length: 200 }, (_, index) => `value += ${index} * value`).join(";")
  write("part-1.cjs", `exports.one = (value) => { ${body} }\nexports.two = (value) => { ${body}; value++ }`)
  write("main.cjs", 'require("./part-1.cjs")[process.argv[2]]?.(1)')
  await run({ args: ["none"] })
  const sizes = [size()]
  await run({ args: ["one"] })
  sizes.push(size())
  await run({ args: ["one"], renew: true })
  sizes.push(size())
  await run({ args: ["two"], renew: true })
  sizes.push(size())
  const [none = 0, same = 0, one = 0, both = 0] = sizes
  expect(same).toBe(none)
  expect(one).toBeGreaterThan(none + 1000)
  expect(both).toBeGreaterThan(one + 1000)

  function size(): number {
    return statSync(keptFile("part-1.cjs")).size
  }
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
  return readdirSync(cache, { recursive: true, encoding: "utf8" })
    .filter((path) => path.includes("/"))
    .map((path) => path.slice(path.indexOf("/") + 1))
}

function keptFile(name: string): string {
  return join(cache, `${process.version}-${process.platform}-${process.arch}`, `${name}.bin`)
}

async function run({ args = [], renew = false }: { args?: string[]; renew?: boolean } = {}) {
  const options = JSON.stringify({ entry: join(directory, "main.cjs"), cache, renew })
  const program = `require(${JSON.stringify(loader)}).runBundle(${options})`
  return await execute(process.execPath, ["-e", program, "entry", ...args])
}
