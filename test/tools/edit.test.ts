import {
  chmod,
  lstat,
  mkdir,
  mkdtemp,
  readFile,
  realpath,
  rm,
  stat,
  symlink,
  writeFile,
} from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as fc from "fast-check"
import { afterEach, beforeEach, describe, expect, test } from "vitest"
import { stampFile } from "../../src/files/file-tracker.ts"
import { type FakeContext, fakeContext } from "../../src/testing/context.ts"
import { editTool } from "../../src/tools/edit/edit.ts"

let directory: string
let ctx: FakeContext

beforeEach(async () => {
  directory = await realpath(await mkdtemp(join(tmpdir(), "tackle-edit-")))
  ctx = fakeContext({ directory })
})

afterEach(() => rm(directory, { recursive: true, force: true }))

const at = (name: string) => join(directory, name)
const text = (name: string) => readFile(at(name), "utf8")

interface Strings {
  oldString: string
  newString: string
  replaceAll?: boolean
}

async function edit(filePath: string, args: Strings, context = ctx) {
  const tool = await editTool.init()
  return tool.execute(tool.parameters.parse({ filePath, ...args }), context)
}

/** A file that this session has read. */
async function seen(name: string, content: string | Uint8Array): Promise<void> {
  await writeFile(at(name), content)
  ctx.files.record(at(name), await stampFile(at(name)))
}

describe("a replacement", () => {
  test("reports the change", async () => {
    await seen("a.txt", "one\ntwo\nthree\n")
    const result = await edit("a.txt", { oldString: "two", newString: "2" })
    expect(await text("a.txt")).toBe("one\n2\nthree\n")
    expect(result).toMatchObject({
      title: "a.txt",
      output: "Edited a.txt: replaced one occurrence at line 2.",
    })
    expect(result.metadata).toMatchObject({
      filePath: at("a.txt"),
      exists: true,
      diff: expect.stringContaining("-two\n+2\n"),
      strategy: "exact",
      replacements: 1,
      file: { path: at("a.txt"), stamp: await stampFile(at("a.txt")) },
    })
  })

  test("asks for permission with the path and the diff", async () => {
    await seen("a.txt", "one\n")
    await edit("a.txt", { oldString: "one", newString: "two" })
    expect(ctx.asked).toEqual([
      {
        permission: "edit",
        patterns: [at("a.txt")],
        always: ["*"],
        metadata: { filePath: at("a.txt"), exists: true, diff: expect.stringContaining("-one\n+two\n") },
      },
    ])
  })

  test("counts the occurrences with replaceAll", async () => {
    await seen("a.txt", "x\ny\nx\n")
    const result = await edit("a.txt", { oldString: "x", newString: "z", replaceAll: true })
    expect(await text("a.txt")).toBe("z\ny\nz\n")
    expect(result.output).toBe("Edited a.txt: replaced 2 occurrences at lines 1, 3.")
  })

  test("names the strategy and shows the change of an inexact match", async () => {
    await seen("a.txt", "if x:\n\tgo()\n")
    const result = await edit("a.txt", { oldString: "    go()", newString: "    run()" })
    expect(await text("a.txt")).toBe("if x:\n\trun()\n")
    expect(result.output).toContain('(strategy "normalized-lines")')
    expect(result.output).toContain("-\tgo()\n+\trun()\n")
    expect(result.metadata?.strategy).toBe("normalized-lines")
  })

  test("allows the next edit", async () => {
    await seen("a.txt", "one\n")
    await edit("a.txt", { oldString: "one", newString: "two" })
    await edit("a.txt", { oldString: "two", newString: "three" })
    expect(await text("a.txt")).toBe("three\n")
  })

  test("waits for concurrent edits of the same file", async () => {
    const numbers = Array.from({ length: 8 }, (_, index) => `<${index}>`)
    await seen("a.txt", numbers.join("\n"))
    await Promise.all(numbers.map((number) => edit("a.txt", { oldString: number, newString: `${number}!` })))
    expect(await text("a.txt")).toBe(numbers.map((number) => `${number}!`).join("\n"))
  })

  test("follows a link, and keeps the link and the mode", async () => {
    await seen("real.sh", "one\n")
    await chmod(at("real.sh"), 0o755)
    await symlink("real.sh", at("link.sh"))
    await edit("link.sh", { oldString: "one", newString: "two" })
    expect((await lstat(at("link.sh"))).isSymbolicLink()).toBe(true)
    expect((await stat(at("real.sh"))).mode & 0o7777).toBe(0o755)
    expect(await text("real.sh")).toBe("two\n")
  })
})

describe("keeps bytes outside the span", () => {
  const line = fc.string({ unit: fc.constantFrom("a", "b", " ", "\t", "$&", "é", "😀", "’") })
  const eol = fc.constantFrom("\n", "\r\n", "\r")
  const lines = fc
    .array(
      fc.tuple(line, eol).map(([words, end]) => words + end),
      { maxLength: 6 },
    )
    .map((all) => all.join(""))
  const encode: Record<string, (value: string) => Buffer> = {
    "utf-8": (value) => Buffer.from(value),
    "utf-8 with mark": (value) => Buffer.from(`\ufeff${value}`),
    "utf-16le": (value) => Buffer.from(`\ufeff${value}`, "utf16le"),
    "utf-16be": (value) => Buffer.from(`\ufeff${value}`, "utf16le").swap16(),
  }

  test.each(Object.keys(encode))(
    "%s, with every line ending, with and without a last one",
    async (encoding) => {
      const bytes = encode[encoding] ?? Buffer.from
      await fc.assert(
        fc.asyncProperty(lines, lines, line, line, async (before, after, tail, fresh) => {
          await seen("a.txt", bytes(`${before}<old>${tail}${after}`))
          await edit("a.txt", { oldString: "<old>", newString: `<${fresh}>` })
          expect(await readFile(at("a.txt"))).toEqual(bytes(`${before}<${fresh}>${tail}${after}`))
        }),
        { numRuns: 40 },
      )
    },
  )
})

describe("creation", () => {
  test("creates a file with an empty oldString", async () => {
    const result = await edit("a/new.txt", { oldString: "", newString: "x\r\n" })
    expect(await text("a/new.txt")).toBe("x\r\n")
    expect(result).toMatchObject({ output: "Created a/new.txt.", metadata: { exists: false } })
  })

  test("does not overwrite an existing file", async () => {
    await seen("a.txt", "one")
    await expect(edit("a.txt", { oldString: "", newString: "x" })).rejects.toMatchObject({
      code: "edit.empty",
      message: expect.stringContaining("write"),
    })
    expect(await text("a.txt")).toBe("one")
  })
})

describe("rejects", () => {
  test("identical strings", async () => {
    await seen("a.txt", "one")
    await expect(edit("a.txt", { oldString: "one", newString: "one" })).rejects.toMatchObject({
      code: "edit.identical",
    })
  })

  test("a missing file", async () => {
    await expect(edit("none.txt", { oldString: "a", newString: "b" })).rejects.toMatchObject({
      code: "file.not-found",
      message: expect.stringMatching(/none\.txt does not exist.*write/),
    })
  })

  test("a directory", async () => {
    await mkdir(at("dir"))
    await expect(edit("dir", { oldString: "a", newString: "b" })).rejects.toMatchObject({
      code: "file.unfit",
    })
  })

  test.each([
    ["binary", Uint8Array.of(0x61, 0, 0x62)],
    ["Latin-1", Uint8Array.of(0x61, 0xe4)],
  ])("a %s file", async (_, bytes) => {
    await seen("a.dat", bytes)
    await expect(edit("a.dat", { oldString: "a", newString: "b" })).rejects.toMatchObject({
      code: "file.unfit",
    })
    expect(await readFile(at("a.dat"))).toEqual(Buffer.from(bytes))
  })

  test("a file that was never read", async () => {
    await writeFile(at("a.txt"), "one")
    await expect(edit("a.txt", { oldString: "one", newString: "two" })).rejects.toMatchObject({
      code: "file.unread",
    })
    expect(await text("a.txt")).toBe("one")
  })

  test("a file that changed since it was read", async () => {
    await seen("a.txt", "one")
    await writeFile(at("a.txt"), "one more")
    await expect(edit("a.txt", { oldString: "one", newString: "two" })).rejects.toMatchObject({
      code: "file.changed",
    })
  })

  test("a file that changes during the permission request", async () => {
    await seen("a.txt", "one")
    const slow = fakeContext({
      directory,
      files: ctx.files,
      onAsk: () => writeFile(at("a.txt"), "one, theirs"),
    })
    await expect(edit("a.txt", { oldString: "one", newString: "two" }, slow)).rejects.toMatchObject({
      code: "file.changed",
      message: expect.stringContaining("Nothing was written"),
    })
    expect(await text("a.txt")).toBe("one, theirs")
  })

  test("several occurrences, with their number and lines", async () => {
    await seen("a.txt", "x\ny\nx\n")
    await expect(edit("a.txt", { oldString: "x", newString: "z" })).rejects.toMatchObject({
      code: "edit.ambiguous",
      message:
        "oldString occurs 2 times in a.txt, at lines 1, 3. Nothing was changed. " +
        "Add surrounding lines until oldString is unique, or set replaceAll to change every occurrence.",
    })
  })

  test("very many occurrences, with a lower bound of their number", async () => {
    await seen("a.txt", "x\n".repeat(10_001))
    await expect(edit("a.txt", { oldString: "x", newString: "z" })).rejects.toMatchObject({
      message: expect.stringMatching(/^oldString occurs at least 10000 times .* and at least 9990 more\./),
    })
  })

  test("several occurrences on one line, with this line", async () => {
    await seen("a.txt", "x x\ny\n")
    await expect(edit("a.txt", { oldString: "x", newString: "z" })).rejects.toMatchObject({
      message: expect.stringContaining("oldString occurs 2 times in a.txt, at line 1. Nothing"),
    })
  })

  test("several similar texts", async () => {
    await seen("a.txt", "\tgo()\nx\n\tgo()\n")
    await expect(
      edit("a.txt", { oldString: "  go()", newString: "  run()", replaceAll: true }),
    ).rejects.toMatchObject({
      code: "edit.ambiguous",
      message: expect.stringMatching(/2 places resemble it, at lines 1, 3 \(strategy "normalized-lines"\)/),
    })
    expect(await text("a.txt")).toBe("\tgo()\nx\n\tgo()\n")
  })

  test("missing text, and shows the most similar text", async () => {
    await seen("a.txt", "a\n\nfunction total(items) {}\n")
    await expect(
      edit("a.txt", { oldString: "function sum(items) {}", newString: "x" }),
    ).rejects.toMatchObject({
      code: "edit.missing",
      message: expect.stringContaining("The most similar text begins at line 3:\nfunction total(items) {}\n"),
    })
  })

  test("an undetermined indentation", async () => {
    const content = "if a:\n    b()\n    if c:\n        d()\n"
    await seen("a.py", content)
    const args = { oldString: "b()\nif c:\nd()", newString: "b()\nif c:\nd()\ne()" }
    await expect(edit("a.py", args)).rejects.toMatchObject({ code: "edit.indentation" })
    expect(await text("a.py")).toBe(content)
  })

  test("an edit that changes only line endings", async () => {
    await seen("a.txt", "a\r\nb\r\n")
    await expect(edit("a.txt", { oldString: "a\r\nb", newString: "a\nb" })).rejects.toMatchObject({
      code: "edit.unchanged",
    })
  })

  test("half a character", async () => {
    await seen("a.txt", "😀")
    await expect(edit("a.txt", { oldString: "\ud83d", newString: "x" })).rejects.toMatchObject({
      code: "text.malformed",
    })
    expect(ctx.asked).toEqual([])
  })
})
