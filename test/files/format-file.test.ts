import { existsSync } from "node:fs"
import { chmod, mkdir, mkdtemp, readFile, realpath, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { dirname, join, resolve } from "node:path"
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest"
import { stampFile } from "../../src/files/file-tracker.ts"
import { defaultScanLimits } from "../../src/files/scan.ts"
import { type ChangeCapability, createTurnChanges, type TurnRecord } from "../../src/files/turn-changes.ts"
import type { FormatterConfig } from "../../src/formatter/config.ts"
import { createFormatterService } from "../../src/formatter/service.ts"
import { createContentDirectory } from "../../src/store/content-directory.ts"
import { hashOf } from "../../src/store/content-store.ts"
import { type FakeContext, fakeContext } from "../../src/testing/context.ts"
import { applyPatchTool } from "../../src/tools/apply-patch/apply-patch.ts"
import { editTool } from "../../src/tools/edit/edit.ts"
import { writeTool } from "../../src/tools/write.ts"

const modules = resolve(import.meta.dirname, "../../node_modules")

let directory: string
let programs: string
let ctx: FakeContext

beforeEach(async () => {
  directory = await realpath(await mkdtemp(join(tmpdir(), "tackle-format-")))
  programs = await realpath(await mkdtemp(join(tmpdir(), "tackle-programs-")))
  ctx = fakeContext({ directory })
})

afterEach(async () => {
  await rm(directory, { recursive: true, force: true })
  await rm(programs, { recursive: true, force: true })
})

const at = (name: string) => join(directory, name)

/** Creates a program that runs a Node script with `path`. By default, the program is outside the project. */
async function program(body: string, path = join(programs, "tidy")): Promise<string> {
  await mkdir(dirname(path), { recursive: true })
  const head = `#!${process.execPath}\nconst fs = require("node:fs"); const path = process.argv[2];`
  await writeFile(path, `${head}\n${body}\n`)
  await chmod(path, 0o755)
  return path
}

const upper = `fs.writeFileSync(path, fs.readFileSync(path, "utf8").toUpperCase())`

function switchOn(config: FormatterConfig, options: { trusted?: boolean; timeoutMs?: number } = {}): void {
  const service = createFormatterService({
    config,
    worktree: directory,
    trusted: false,
    environment: { PATH: `${programs}:${process.env.PATH}` },
    ...options,
  })
  if (service) ctx.formatter = service
}

const linter = { tidy: { command: ["tidy", "$FILE"], extensions: [".txt"] } }
const tidy = { tidy: { ...linter.tidy, runsProjectCode: false } }

async function write(filePath: string, content: string) {
  return (await writeTool.init()).execute({ filePath, content }, ctx)
}

async function edit(filePath: string, oldString: string, newString: string) {
  return (await editTool.init()).execute({ filePath, oldString, newString, replaceAll: false }, ctx)
}

async function patch(...lines: string[]) {
  const patchText = ["*** Begin Patch", ...lines, "*** End Patch"].join("\n")
  return (await applyPatchTool.init()).execute({ patchText }, ctx)
}

/** Records each change from now on, as "before > after". Returns the records. */
function keepChanges(meet: (change: Parameters<ChangeCapability["files"]>[0]) => void = () => {}): string[] {
  const kept: string[] = []
  const text = (bytes: Uint8Array | undefined) => (bytes ? Buffer.from(bytes).toString() : "none")
  ctx.changes = {
    async files(change, work) {
      meet(change)
      kept.push(`${text(change.before[0]?.bytes)} > ${text(change.after[0]?.bytes)}`)
      return work()
    },
    command: (_text, _signal, work) => work(),
  }
  return kept
}

describe("a formatter that succeeds", () => {
  test("formats the file, reports its change, and allows the next edit", async () => {
    await program(upper)
    switchOn(tidy)
    const written = await write("a.txt", "one\ntwo\n")
    expect(await readFile(at("a.txt"), "utf8")).toBe("ONE\nTWO\n")
    expect(written.output).toContain("tidy then formatted a.txt")
    expect(written.output).toContain("-one\n-two\n+ONE\n+TWO")
    expect(written.metadata).toMatchObject({
      formatted: { by: ["tidy"] },
      file: { path: at("a.txt"), stamp: await stampFile(at("a.txt")) },
    })
    const edited = await edit("a.txt", "TWO", "three")
    expect(await readFile(at("a.txt"), "utf8")).toBe("ONE\nTHREE\n")
    expect(edited.output).toContain("tidy then formatted")
  })

  test("formats every remaining file of a patch", async () => {
    await program(upper)
    switchOn(tidy)
    await writeFile(at("gone.txt"), "x\n")
    ctx.files.record(at("gone.txt"), await stampFile(at("gone.txt")))
    const lines = ["*** Add File: a.txt", "+a", "*** Add File: b.md", "+b", "*** Delete File: gone.txt"]
    const result = await patch(...lines)
    expect(await readFile(at("a.txt"), "utf8")).toBe("A\n")
    expect(await readFile(at("b.md"), "utf8")).toBe("b\n")
    expect(result.metadata).toMatchObject({ formatted: [{ path: at("a.txt"), by: ["tidy"] }] })
    expect(ctx.files.seen(at("a.txt"))).toEqual(await stampFile(at("a.txt")))
  })

  test("stops formatting a patch at one time limit for all files", async () => {
    await program(upper)
    switchOn(tidy)
    const service = ctx.formatter
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] })
    try {
      if (service)
        ctx.formatter = {
          handles: (path) => service.handles(path),
          format(path, signal) {
            vi.advanceTimersByTime(20_000)
            return service.format(path, signal)
          },
        }
      const result = await patch(...["a", "b", "c"].flatMap((name) => [`*** Add File: ${name}.txt`, "+x"]))
      expect(await readFile(at("a.txt"), "utf8")).toBe("X\n")
      expect(await readFile(at("b.txt"), "utf8")).toBe("x\n")
      for (const name of ["b.txt", "c.txt"])
        expect(result.output).toContain(
          `${name} was not formatted (tidy: stopped before it ran: formatting the whole patch took longer than the limit of 30 s)`,
        )
      expect(result.metadata).toMatchObject({ notFormatted: [{ path: at("b.txt") }, { path: at("c.txt") }] })
      expect(vi.getTimerCount()).toBe(0)
    } finally {
      vi.useRealTimers()
    }
  })

  test("runs biome from node_modules with the settings of a trusted project", async () => {
    await writeFile(at("biome.json"), JSON.stringify({ formatter: { indentStyle: "space", indentWidth: 3 } }))
    await mkdir(at("node_modules/.bin"), { recursive: true })
    await writeFile(at("node_modules/.bin/biome"), `#!/bin/sh\nexec "${modules}/.bin/biome" "$@"\n`)
    await chmod(at("node_modules/.bin/biome"), 0o755)
    switchOn(true, { trusted: true })
    const result = await write("a.ts", "if(a){b( )}")
    expect(result.output).toContain("biome then formatted a.ts")
    expect(await readFile(at("a.ts"), "utf8")).toBe("if (a) {\n   b();\n}\n")
  })

  test("reports nothing if it changes nothing or handles no such file", async () => {
    await program("")
    switchOn(tidy)
    expect((await write("a.txt", "one\n")).output).toBe("Created a.txt (1 line, 4 bytes).")
    expect((await write("a.md", "one\n")).output).toBe("Created a.md (1 line, 4 bytes).")
  })

  test("records its change for undo", async () => {
    await program(upper)
    switchOn(tidy)
    const kept = keepChanges()
    await write("a.txt", "one")
    expect(kept).toEqual(["none > one", "one > ONE"])
  })
})

describe("a formatter that fails", () => {
  test("leaves the written file and reports one line", async () => {
    await program(`fs.writeFileSync(path, "half"); console.error("bad syntax\\nin a.txt"); process.exit(3)`)
    switchOn(tidy)
    const result = await write("a.txt", "one\n")
    expect(await readFile(at("a.txt"), "utf8")).toBe("one\n")
    expect(result.output).toBe(
      "Created a.txt (1 line, 4 bytes).\na.txt was not formatted (tidy: ended with exit code 3: bad syntax). Your change was saved.",
    )
    expect((await edit("a.txt", "one", "two")).output).toContain("Edited a.txt")
  })

  test("is ended with its child processes at the time limit", async () => {
    await program(`require("node:child_process").spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"], { stdio: "ignore" });
      fs.writeFileSync(path + ".started", ""); setInterval(() => {}, 1000)`)
    switchOn(tidy, { timeoutMs: 1_000 })
    const result = await write("a.txt", "one\n")
    expect(result.output).toContain("tidy: took longer than 1 s and was killed")
    expect(await readFile(at("a.txt"), "utf8")).toBe("one\n")
  })

  test("is ended by an interrupt, and the edit remains", async () => {
    const started = at("a.txt.started")
    await program(`fs.writeFileSync(path + ".started", ""); setInterval(() => {}, 1000)`)
    switchOn(tidy)
    const stop = new AbortController()
    ctx.abort = stop.signal
    const writing = write("a.txt", "one\n")
    while (!existsSync(started)) await new Promise((wake) => setTimeout(wake, 10))
    stop.abort(new Error("by the user"))
    expect((await writing).output).toContain("tidy: stopped")
    expect(await readFile(at("a.txt"), "utf8")).toBe("one\n")
  })

  test("is reported if it is not installed", async () => {
    switchOn(tidy)
    expect((await write("a.txt", "one\n")).output).toContain("the program tidy was not found")
  })

  test("does not overwrite a file that the user saved if it never ran", async () => {
    switchOn(tidy)
    const service = ctx.formatter
    if (service)
      ctx.formatter = {
        handles: (path) => service.handles(path),
        async *format(path, signal) {
          await writeFile(path, "by the user\n")
          yield* service.format(path, signal)
        },
      }
    expect((await write("a.txt", "one\n")).output).toContain("the program tidy was not found")
    expect(await readFile(at("a.txt"), "utf8")).toBe("by the user\n")
    await expect(edit("a.txt", "one", "two")).rejects.toThrow("has changed since")
  })

  test("has its output recorded before the output is reverted", async () => {
    await program(`fs.writeFileSync(path, "half"); process.exit(3)`)
    switchOn(tidy)
    const kept = keepChanges()
    await write("a.txt", "one")
    expect(await readFile(at("a.txt"), "utf8")).toBe("one")
    expect(kept).toEqual(["none > one", "one > half", "half > one"])
  })

  test("does not prevent the undo of its turn, and its output is stored", async () => {
    await program(`fs.writeFileSync(path, "half"); process.exit(3)`)
    switchOn(tidy)
    const contents = createContentDirectory(join(programs, "contents"))
    const records: TurnRecord[] = []
    ctx.changes = createTurnChanges({
      contents,
      worktree: directory,
      leaveOut: programs,
      limits: defaultScanLimits,
      save: async (record) => void records.push(record),
      note: (record) => void records.push(record),
    })
    await write("a.txt", "one")
    const hash = (text: string) => hashOf(Buffer.from(text))
    const files = records.at(-1)?.files
    expect(files).toMatchObject([{ path: at("a.txt"), after: { hash: hash("one") } }])
    expect(files?.[0]).not.toHaveProperty("fixed")
    expect(Buffer.from((await contents.get(hash("half"))) ?? []).toString()).toBe("half")
  })

  test("reports that the content is uncertain if it cannot be read afterwards", async () => {
    await program(`fs.rmSync(path); fs.mkdirSync(path)`)
    switchOn(tidy)
    expect((await write("a.txt", "one")).output).toMatch(
      /Formatting a\.txt failed \(.*is a directory.*\), and the content of the file is uncertain\. Read the file before you change it again\.$/,
    )
  })
})

describe("a second formatter that fails", () => {
  const both = {
    ...tidy,
    second: { command: ["second", "$FILE"], extensions: [".txt"], runsProjectCode: false },
  }

  test("keeps the change of the first, and both are reported", async () => {
    await program(upper)
    await program(
      `fs.writeFileSync(path, "half"); console.error("bad"); process.exit(3)`,
      join(programs, "second"),
    )
    switchOn(both)
    const kept = keepChanges()
    const { output, metadata } = await write("a.txt", "one\n")
    expect(await readFile(at("a.txt"), "utf8")).toBe("ONE\n")
    expect(output).toMatch(
      /tidy then formatted a\.txt.*-one\n\+ONE\n.*none of its changes were kept \(second: .*3: bad\)/s,
    )
    expect(metadata).toMatchObject({
      formatted: { by: ["tidy"] },
      notFormatted: "second: ended with exit code 3: bad",
      file: { stamp: await stampFile(at("a.txt")) },
    })
    expect(kept).toEqual(["none > one\n", "one\n > half", "half > ONE\n"])
    expect((await edit("a.txt", "ONE", "two")).output).toContain("Edited a.txt")
  })

  test("keeps the change of the first if it is not installed", async () => {
    await program(upper)
    switchOn(both)
    const kept = keepChanges()
    expect((await write("a.txt", "one\n")).output).toContain("second: the program second was not found")
    expect(await readFile(at("a.txt"), "utf8")).toBe("ONE\n")
    expect(kept).toEqual(["none > one\n", "one\n > ONE\n"])
  })
})

describe("a formatted file", () => {
  test("is reverted if it cannot be recorded, and allows the next edit", async () => {
    await program(upper)
    switchOn(tidy)
    keepChanges(({ before }) => {
      if (before[0]?.bytes) throw new Error("the disk is full")
    })
    const { output, metadata } = await write("a.txt", "one\n")
    expect(output).toContain("a.txt was not formatted (the disk is full). Your change was saved.")
    expect(await readFile(at("a.txt"), "utf8")).toBe("one\n")
    expect(metadata).toMatchObject({ file: { stamp: await stampFile(at("a.txt")) } })
    delete ctx.changes
    expect((await edit("a.txt", "one", "two")).output).toContain("Edited a.txt")
  })
})

describe("an untrusted project", () => {
  test("runs no program of its own", async () => {
    await program(upper, at("node_modules/.bin/tidy"))
    switchOn(tidy)
    expect((await write("a.txt", "one\n")).output).toContain("the program tidy was not found")
    switchOn(tidy, { trusted: true })
    expect((await write("b.txt", "one\n")).output).toContain("tidy then formatted")
  })

  test("runs no program that its settings name", async () => {
    await program(upper, join(programs, "prettier"))
    await writeFile(at(".prettierrc"), "{}")
    switchOn(true)
    expect((await write("a.css", "one\n")).output).toBe("Created a.css (1 line, 4 bytes).")
    switchOn({ prettier: {} })
    expect((await write("b.css", "one\n")).output).toContain(
      "prettier: it may run code from this untrusted project",
    )
  })

  test("runs a command of the user only if the command does not run project code", async () => {
    await program(upper)
    switchOn(linter)
    expect((await write("a.txt", "one\n")).output).toContain(
      "tidy: it may run code from this untrusted project",
    )
    expect(await readFile(at("a.txt"), "utf8")).toBe("one\n")
    switchOn({ gofmt: linter.tidy })
    expect((await write("b.txt", "one\n")).output).toContain(
      "gofmt: it may run code from this untrusted project",
    )
    switchOn(linter, { trusted: true })
    expect((await write("c.txt", "one\n")).output).toContain("tidy then formatted")
    switchOn(tidy)
    expect((await write("d.txt", "one\n")).output).toContain("tidy then formatted")
  })
})
