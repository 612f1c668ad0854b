import { execFile } from "node:child_process"
import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join, resolve } from "node:path"
import { promisify } from "node:util"
import { afterEach, beforeEach, describe, expect, test } from "vitest"

const loader = resolve(import.meta.dirname, "../../bin/load.cjs")
const execute = promisify(execFile)
const variant = `${process.version}-${process.platform}-${process.arch}`
/** Nobody. */
const other = 65_534

let directory: string
let cache: string
/** The person's data directory. */
let data: string

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "tackle-load-"))
  cache = join(directory, "cache")
  data = join(directory, "data")
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
    writeSealed(bad)
    expect(await run()).toEqual({ stdout: "part tells one\n", stderr: "" })
    expect(readFileSync(keptFile("part-1.cjs")).length).toBeGreaterThan(bad.length)
  }
})

test("what was damaged since it was kept does not stop the command, and is made anew", async () => {
  await run()
  const good = readFileSync(keptFile("part-1.cjs"))
  const damaged = Buffer.from(good)
  for (let at = 64; at < damaged.length; at++) damaged[at] = (good[at] ?? 0) ^ 0xff
  const cut = Buffer.concat([good.subarray(0, 80), Buffer.alloc(good.length - 80)])
  for (const bad of [damaged, cut]) {
    writeFileSync(keptFile("part-1.cjs"), bad)
    expect(await run()).toEqual({ stdout: "part tells one\n", stderr: "" })
    expect(readFileSync(keptFile("part-1.cjs")).equals(bad)).toBe(false)
  }
  // Were its time as it was, V8 would take it.
  writeSealed(damaged)
  await expect(run()).rejects.toThrow()
})

test("what somebody else could have written is not taken, and nothing is written there", async () => {
  await run()
  tellOtherwise()
  for (const open of [cache, keptFile("part-1.cjs")]) {
    const mode = statSync(open).mode
    for (const bits of [0o020, 0o002]) {
      chmodSync(open, mode | bits)
      expect((await run()).stdout).toBe("PART TELLS one\n")
      // The folder is left to those who can write it, the file is made anew.
      if (open !== cache) expect(statSync(open).mode & 0o022).toBe(0)
      chmodSync(open, mode)
    }
  }
})

test.runIf(process.getuid?.() === 0)("what another user owns is not taken", async () => {
  await run()
  tellOtherwise()
  chownSync(keptFile("part-1.cjs"), other, other)
  expect((await run()).stdout).toBe("PART TELLS one\n")
  chownSync(cache, other, other)
  tellOtherwise("PaRt TeLLs")
  expect((await run()).stdout).toBe("PaRt TeLLs one\n")
})

test("without a place for it everything runs as well", async () => {
  writeFileSync(cache, "a file, and no folder")
  expect(await run()).toEqual({ stdout: "part tells one\n", stderr: "" })
})

describe("where others can write beside the bundle, it is kept in the person's data directory", () => {
  beforeEach(() => {
    mkdirSync(cache)
    chmodSync(cache, 0o777)
    mkdirSync(data, { recursive: true })
  })

  test("and taken from there", async () => {
    await run()
    expect(readdirSync(cache)).toEqual([])
    tellOtherwise()
    expect((await run()).stdout).toBe("part tells one\n")
  })

  test("for one build at a time", async () => {
    await run()
    const [first] = readdirSync(join(data, "compiled"))
    utimesSync(join(directory, "main.cjs"), 5, 5)
    tellOtherwise()
    expect((await run()).stdout).toBe("PART TELLS one\n")
    const [second, ...more] = readdirSync(join(data, "compiled"))
    expect(more).toEqual([])
    expect(second).not.toBe(first)
  })

  test("unless others can write there too", async () => {
    await run()
    const [place] = readdirSync(join(data, "compiled"))
    chmodSync(join(data, "compiled", place ?? ""), 0o777)
    tellOtherwise()
    expect((await run()).stdout).toBe("PART TELLS one\n")
  })

  test("which is not made for it, nor where its path is not absolute", async () => {
    rmSync(data, { recursive: true })
    for (const given of [data, "data"]) {
      expect((await run({ env: { TACKLE_DATA_DIR: given } })).stdout).toBe("part tells one\n")
      expect(readdirSync(directory)).not.toContain("data")
    }
  })
})

test("who cannot write beside the bundle takes what root kept there, and keeps with the own data", async () => {
  await run()
  for (const [folder, mode] of [
    [directory, 0o755],
    [data, 0o777],
  ] as const) {
    mkdirSync(folder, { recursive: true })
    chmodSync(folder, mode)
  }
  const before = readdirSync(join(cache, variant))
  tellOtherwise()
  expect((await run(whoCannotWrite())).stdout).toBe("part tells one\n")
  expect(readdirSync(join(cache, variant))).toEqual(before)
  const [place] = readdirSync(join(data, "compiled"))
  expect(readdirSync(join(data, "compiled", place ?? "", variant))).toEqual(before)
})

test("who may look neither beside the bundle nor at the own data runs as well", async () => {
  mkdirSync(cache)
  chmodSync(directory, 0o755)
  mkdirSync(data)
  const closed = join(data, "of-another")
  mkdirSync(closed, { mode: 0 })
  const env = { TACKLE_DATA_DIR: join(closed, "tackle") }
  expect(await run({ ...whoCannotWrite(), env })).toEqual({ stdout: "part tells one\n", stderr: "" })
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

/** V8 knows a file by its length: what is told after this does not come from what was kept. */
function tellOtherwise(words = "PART TELLS"): void {
  write("part-1.cjs", `exports.tell = (what) => console.log("${words}", what)`)
}

/** With the time that says that nothing was written since. */
function writeSealed(bytes: Uint8Array): void {
  writeFileSync(keptFile("part-1.cjs"), bytes)
  const time = 1_000_000_000 + 2 * bytes.length
  utimesSync(keptFile("part-1.cjs"), time, time)
}

/** Root can write everywhere: in its place another user runs the command then. */
function whoCannotWrite(): RunOptions {
  if (process.getuid?.() === 0) return { user: other }
  chmodSync(cache, 0o555)
  return {}
}

function write(name: string, text: string): void {
  writeFileSync(join(directory, name), text)
}

function kept(): string[] {
  return readdirSync(dirname(keptFile("any"))).toSorted()
}

function keptFile(name: string): string {
  return join(cache, variant, `${name}.bin`)
}

interface RunOptions {
  args?: string[]
  env?: Record<string, string>
  /** Node's own. */
  options?: string
  /** By its number. Default: who runs the tests. */
  user?: number
}

/** Runs the entry as `bin/tackle` does: from a file, so that Node itself has no options. */
async function run({ args = [], env = {}, options = "", user }: RunOptions = {}) {
  const entry = join(directory, "main.cjs")
  const start = join(directory, "start.cjs")
  writeFileSync(start, `require(${JSON.stringify(loader)}).runBundle(${JSON.stringify({ entry, cache })})`)
  const { NODE_OPTIONS: _, ...inherited } = process.env
  const given = options === "" ? {} : { NODE_OPTIONS: options }
  return await execute(process.execPath, [start, ...args], {
    cwd: directory,
    env: { ...inherited, TACKLE_DATA_DIR: data, ...given, ...env },
    ...(user !== undefined ? { uid: user, gid: user } : {}),
  })
}
