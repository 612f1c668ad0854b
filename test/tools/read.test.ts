import { execFileSync } from "node:child_process"
import { createHash } from "node:crypto"
import { mkdir, open, symlink } from "node:fs/promises"
import { createServer } from "node:net"
import { deflateSync } from "node:zlib"
import fc from "fast-check"
import { afterEach, beforeEach, expect, test } from "vitest"
import * as z from "zod"
import { stampFile } from "../../src/files/file-tracker.ts"
import { type FakeContext, fakeContext } from "../../src/testing/context.ts"
import { type TemporaryProject, temporaryProject } from "../../src/testing/project.ts"
import type { ToolResult } from "../../src/tool/tool.ts"
import { readTool } from "../../src/tools/read.ts"

let project: TemporaryProject
let ctx: FakeContext

beforeEach(async () => {
  project = await temporaryProject()
  ctx = fakeContext({ directory: project.directory })
})
afterEach(() => project.remove())

async function read(args: unknown, context = ctx): Promise<ToolResult> {
  const { parameters, execute } = await readTool.init()
  return execute(parameters.parse(args), context)
}

async function failure(args: unknown, context = ctx): Promise<string> {
  return read(args, context).then(
    ({ output }) => expect.unreachable(`no error, but: ${output}`),
    (error: unknown) => String(error),
  )
}

/** Returns the text between the tags. */
function body({ output }: ToolResult): string {
  return /^<(\w+) path="[^"\n]*">\n(.*)\n<\/\1>/s.exec(output)?.[2] ?? expect.unreachable(output)
}

function footer({ output }: ToolResult): string {
  return output.slice(output.lastIndexOf("\n</") + 1).replace(/^.*\n/, "")
}

test("returns numbered lines in a block, with a footer", async () => {
  await project.write("src/a.ts", "one\n\tzwei ü\n\nfour\n")
  const result = await read({ filePath: "src/a.ts" })
  expect(result.title).toBe("src/a.ts")
  expect(result.output).toBe(
    `<file path="${project.path("src/a.ts")}">\n    1→one\n    2→\tzwei ü\n    3→\n    4→four\n</file>\n(End of file: 4 lines in total.)`,
  )
  expect(result.metadata).toMatchObject({
    truncated: false,
    totalLines: 4,
    shownLines: 4,
    preview: "one\n\tzwei ü\n\nfour",
  })
})

test("asks for the absolute path first", async () => {
  await project.write("a.txt", "x")
  await read({ filePath: "a.txt" })
  expect(ctx.asked).toMatchObject([{ permission: "read", patterns: [project.path("a.txt")], always: ["*"] }])

  const refusing = fakeContext({
    directory: project.directory,
    onAsk: () => {
      throw new Error("refused")
    },
  })
  expect(await failure({ filePath: "a.txt" }, refusing)).toContain("refused")
  expect(await failure({ filePath: "missing.txt" }, refusing)).toContain("refused")
  expect(refusing.files.seen(project.path("a.txt"))).toBeUndefined()
})

test("applies offset (from 0) and limit, also as strings", async () => {
  await project.write("a.txt", "0\n1\n2\n3\n4\n")
  const middle = await read({ filePath: "a.txt", offset: "1", limit: "2" })
  expect(body(middle)).toBe("    2→1\n    3→2")
  expect(footer(middle)).toBe("(Lines 2-3, 5 in total. Continue with offset 3.)")
  expect(middle.metadata).toMatchObject({ truncated: true, totalLines: 5, shownLines: 2 })

  const rest = await read({ filePath: "a.txt", offset: 3 })
  expect(body(rest)).toBe("    4→3\n    5→4")
  expect(footer(rest)).toBe("(End of file: 5 lines in total.)")
})

test("returns the whole file if the limit is its length", async () => {
  await project.write("a.txt", "0\n1\n2")
  expect((await read({ filePath: "a.txt", limit: 3 })).metadata).toMatchObject({ truncated: false })
})

test("reads 2000 lines by default", async () => {
  await project.write("a.txt", "x\n".repeat(2001))
  const result = await read({ filePath: "a.txt" })
  expect(result.metadata).toMatchObject({ truncated: true, shownLines: 2000, totalLines: 2001 })
  expect(footer(result)).toContain("Continue with offset 2000")
})

test("rejects an offset past the end with the number of lines", async () => {
  await project.write("a.txt", "0\n1\n")
  expect(await failure({ filePath: "a.txt", offset: 2 })).toContain("has 2 lines")
  await project.write("empty.txt", "")
  expect(await failure({ filePath: "empty.txt", offset: 1 })).toContain("has 0 lines")
})

test("accepts an empty file", async () => {
  await project.write("empty.txt", "")
  const result = await read({ filePath: "empty.txt" })
  expect(body(result)).toBe("(empty file)")
  expect(result.metadata).toMatchObject({ truncated: false, totalLines: 0, shownLines: 0 })
})

test("cuts long lines between characters and marks them", async () => {
  await project.write("a.txt", `${"x".repeat(1999)}🙂${"y".repeat(8000)}\nshort\n${"z".repeat(2000)}\n`)
  const result = await read({ filePath: "a.txt" })
  const lines = body(result).split("\n")
  expect(lines[0]).toBe(`    1→${"x".repeat(1999)}… [line cut: 1999 of 10001 characters shown]`)
  expect(lines[1]).toBe("    2→short")
  expect(lines[2]).toBe(`    3→${"z".repeat(2000)}`)
  expect(result.metadata).toMatchObject({ truncated: true })
})

test("limits the output to 50 KB of whole lines", async () => {
  await project.write("a.txt", `${"ü".repeat(500)}\n`.repeat(300))
  const result = await read({ filePath: "a.txt" })
  const shown = Number(result.metadata?.shownLines)
  expect(Buffer.byteLength(body(result))).toBeLessThanOrEqual(51_200)
  expect(Buffer.byteLength(body(result))).toBeGreaterThan(50_000)
  expect(footer(result)).toBe(
    `(Capped at 50 KB: lines 1-${shown}, 300 in total. Continue with offset ${shown}.)`,
  )
  expect(body(await read({ filePath: "a.txt", offset: shown, limit: 1 }))).toContain(`${shown + 1}→ü`)
})

test("removes CR of line ends and a byte order mark", async () => {
  await project.write("a.txt", "\ufeffone\r\ntwo\r\n\r\nin\rside")
  expect(body(await read({ filePath: "a.txt" }))).toBe("    1→one\n    2→two\n    3→\n    4→in\rside")
})

test.each(["utf16le", "utf16be"])("decodes %s with a byte order mark", async (encoding) => {
  const little = Buffer.from("\ufeffgrüße 🙂\r\nzwei\n", "utf16le")
  await project.write("a.txt", encoding === "utf16le" ? little : little.swap16())
  expect(body(await read({ filePath: "a.txt" }))).toBe("    1→grüße 🙂\n    2→zwei")
})

test("replaces and reports bytes that are not UTF-8, but not a real U+FFFD", async () => {
  await project.write("latin.txt", Buffer.from("gr\xfc\xdfe\n", "latin1"))
  const result = await read({ filePath: "latin.txt" })
  expect(body(result)).toBe("    1→gr\ufffd\ufffde")
  expect(footer(result)).toContain("not valid utf-8")

  await project.write("cut.txt", Buffer.from([0x61, 0xe2, 0x82]))
  expect((await read({ filePath: "cut.txt" })).output).toContain("not valid utf-8")
  await project.write("real.txt", "a \ufffd b\n")
  expect((await read({ filePath: "real.txt" })).output).not.toContain("not valid")
})

test("returns pages that make up the whole text", async () => {
  const line = fc.string({ unit: fc.constantFrom("a", "ü", "🙂", " ", "→", "\t"), maxLength: 60 })
  await fc.assert(
    fc.asyncProperty(
      fc.array(line, { minLength: 1, maxLength: 40 }),
      fc.constantFrom("\n", "\r\n"),
      fc.integer({ min: 1, max: 50 }),
      async (lines, eol, limit) => {
        await project.write("a.txt", lines.map((text) => text + eol).join(""))
        const shown: string[] = []
        for (let offset = 0; offset < lines.length; offset += limit) {
          const page = body(await read({ filePath: "a.txt", offset, limit }))
          shown.push(...page.split("\n").map((text) => text.slice(text.indexOf("→") + 1)))
        }
        expect(shown).toEqual(lines)
      },
    ),
    { numRuns: 40 },
  )
})

test("keeps characters whole across chunks", async () => {
  for (const shift of [0, 1, 2, 3]) {
    const content = `${"x".repeat(shift)}${"🙂\n".repeat(60_000)}`
    await project.write("a.txt", content)
    const result = await read({ filePath: "a.txt", offset: 52_420, limit: 30 })
    expect(
      body(result)
        .split("\n")
        .every((line) => line.endsWith("→🙂")),
    ).toBe(true)
    expect(result.metadata).toMatchObject({ totalLines: 60_000 })
  }
})

test("reads only the needed part of a file above 64 MB", async () => {
  const handle = await open(project.path("huge.log"), "w")
  await handle.write("first\n".repeat(1000))
  await handle.write("last\n", 2 * 1024 ** 3)
  await handle.close()
  const result = await read({ filePath: "huge.log", limit: 1 })
  expect(body(result)).toBe("    1→first")
  expect(footer(result)).toBe("(Lines 1-1, more lines follow. Continue with offset 1.)")
  expect(result.metadata).toMatchObject({ truncated: true, shownLines: 1 })
  expect(result.metadata?.totalLines).toBeUndefined()
  expect(ctx.files.seen(project.path("huge.log"))).toEqual(await stampFile(project.path("huge.log")))
})

test("records the stamp of the file under its resolved path", async () => {
  await project.write("real.txt", "one\ntwo\n")
  await symlink(project.path("real.txt"), project.path("link.txt"))
  const { metadata } = await read({ filePath: "link.txt", limit: 1 })
  const stamp = await stampFile(project.path("real.txt"))
  expect(stamp.digest).toBe(createHash("sha256").update("one\ntwo\n").digest("hex"))
  expect(ctx.files.seen(project.path("real.txt"))).toEqual(stamp)
  expect(metadata?.file).toEqual({ path: project.path("real.txt"), stamp })
})

test("suggests similar names for a missing file", async () => {
  for (const name of ["README.md", "readme.txt", "config.json", "unrelated.c"]) await project.write(name, "")
  const typo = await failure({ filePath: "confg.json" })
  expect(typo).toContain("not found")
  expect(typo).toContain(project.path("config.json"))
  expect(typo).not.toContain("unrelated")
  expect(await failure({ filePath: "readme" })).toMatch(/README\.md\n.*readme\.txt|readme\.txt\n.*README\.md/)
  expect(await failure({ filePath: "zzzzzz" })).toContain("Use glob or list to find the right path")
})

test("suggests at most three names", async () => {
  for (const digit of [1, 2, 3, 4, 5]) await project.write(`file${digit}.ts`, "")
  expect((await failure({ filePath: "file.ts" })).split("\n").slice(1)).toHaveLength(3)
})

test("names a missing directory and the nearest existing one", async () => {
  await project.write("source/a.ts", "")
  const text = await failure({ filePath: "sources/deep/a.ts" })
  expect(text).toContain(
    `${project.path("sources")} does not exist either. The nearest existing directory is ${project.directory}.`,
  )
  expect(text).toContain(project.path("source"))
  expect(await failure({ filePath: "source/a.ts/b.ts" })).toContain(
    `${project.path("source/a.ts")} is not a directory that can be listed. The nearest existing directory is`,
  )
})

test("explains a path through a file, a symlink loop and an invalid name", async () => {
  await project.write("a.txt", "")
  await symlink(project.path("loop"), project.path("loop"))
  expect(await failure({ filePath: "a.txt/b" })).toContain("not found")
  expect(await failure({ filePath: "loop" })).toContain("Cannot read")
  expect(await failure({ filePath: "nul\0l" })).toContain("Cannot read")
})

test("rejects pipes, sockets and devices without waiting", async () => {
  execFileSync("mkfifo", [project.path("pipe")])
  expect(await failure({ filePath: "pipe" })).toContain("named pipe")
  expect(await failure({ filePath: "/dev/zero" })).toContain("device")
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(project.path("sock"), resolve))
  expect(await failure({ filePath: "sock" })).toContain("socket")
  await new Promise((resolve) => server.close(resolve))
})

test("rejects binary content with its size", async () => {
  await project.write("a.dat", Buffer.from([1, 2, 0, 3]))
  await project.write("b.txt", Buffer.from(Array.from({ length: 100 }, (_, index) => (index % 2 ? 0x61 : 1))))
  await project.write("c.zip", "text in disguise")
  await project.write(
    "d.txt",
    Buffer.from("\xff\xfe\0\0a\0\0\0", "latin1"), // UTF-32
  )
  for (const name of ["a.dat", "b.txt", "c.zip", "d.txt"])
    expect(await failure({ filePath: name })).toContain("binary file")
  expect(await failure({ filePath: "a.dat" })).toContain("4 bytes")
  expect(ctx.files.seen(project.path("a.dat"))).toBeUndefined()
})

test("reads a file with escape sequences and tabs as text", async () => {
  await project.write("a.log", "\u001b[31mred\u001b[0m\t\f\n".repeat(50))
  expect((await read({ filePath: "a.log" })).metadata).toMatchObject({ totalLines: 50 })
})

test("attaches images and PDFs by content, not by name", async () => {
  const files = {
    "image/png": png(),
    "image/jpeg": Buffer.from([0xff, 0xd8, 0xff, 0xe0, 0, 16]),
    "image/gif": Buffer.from("GIF89a\0\0"),
    "image/webp": Buffer.from("RIFF\0\0\0\0WEBPVP8 "),
    "application/pdf": Buffer.from("%PDF-1.7\n\0"),
  }
  for (const [mime, content] of Object.entries(files)) {
    await project.write("picture.txt", content)
    const result = await read({ filePath: "picture.txt" })
    expect(result.attachments).toEqual([
      {
        type: "file",
        mime,
        url: `data:${mime};base64,${content.toString("base64")}`,
        filename: "picture.txt",
      },
    ])
    expect(result.metadata).toMatchObject({ truncated: false })
  }
})

test("rejects an image that is too large", async () => {
  const handle = await open(project.path("large.png"), "w")
  await handle.write(png())
  await handle.truncate(20 * 1024 * 1024 + 1)
  await handle.close()
  expect(await failure({ filePath: "large.png" })).toContain("of up to 20971520 bytes can be attached")
})

test("reads SVG as text", async () => {
  await project.write("a.svg", '<svg xmlns="http://www.w3.org/2000/svg"/>\n')
  const result = await read({ filePath: "a.svg" })
  expect(body(result)).toContain("1→<svg")
  expect(result.attachments).toBeUndefined()
})

test("lists a directory by name, page by page", async () => {
  for (const name of ["b.txt", "a.txt", ".hidden", "sub/x"]) await project.write(name, "")
  await symlink(project.path("sub"), project.path("to-sub"))
  await symlink(project.path("nowhere"), project.path("broken"))
  const all = await read({ filePath: "." })
  expect(body(all)).toBe(".hidden\na.txt\nb.txt\nbroken\nsub/\nto-sub/")
  expect(footer(all)).toBe("(6 entries in total.)")

  const page = await read({ filePath: project.directory, offset: 1, limit: 2 })
  expect(body(page)).toBe("a.txt\nb.txt")
  expect(footer(page)).toBe("(Entries 2-3 of 6. Continue with offset 3.)")
  expect(page.metadata).toMatchObject({ truncated: true, total: 6 })
  expect(await failure({ filePath: ".", offset: 6 })).toContain("has 6 entries")
})

test("says that a directory is empty", async () => {
  await mkdir(project.path("empty"))
  expect(body(await read({ filePath: "empty" }))).toBe("(empty directory)")
})

test("escapes names in the output", async () => {
  await project.write('a"b\nc/x', "text")
  const listing = await read({ filePath: "." })
  expect(body(listing)).toBe('"a\\"b\\nc/"')
  const file = await read({ filePath: 'a"b\nc/x' })
  expect(file.output.split("\n")[0]).toBe(`<file path="${project.directory}/a&quot;b\\nc/x">`)
  expect(file.title).not.toContain("\n")
})

test("finds Unicode names and paths relative to home", async () => {
  await project.write("grüße 🙂.txt", "hallo")
  expect(body(await read({ filePath: "grüße 🙂.txt" }))).toBe("    1→hallo")
  expect(await failure({ filePath: "~/certainly-not-there-0b1f" })).not.toContain("~")
})

test("stops at an abort", async () => {
  await project.write("a.txt", "x\n")
  const context = fakeContext({ directory: project.directory, abort: AbortSignal.abort() })
  await expect(read({ filePath: "a.txt" }, context)).rejects.toMatchObject({ code: "aborted" })
  expect(context.files.seen(project.path("a.txt"))).toBeUndefined()
})

test.each([
  {},
  { filePath: "" },
  { filePath: "a", offset: -1 },
  { filePath: "a", limit: 0 },
  { filePath: "a", offset: 0.5 },
])("%j is no valid input", async (args) => {
  expect((await readTool.init()).parameters.safeParse(args).success).toBe(false)
})

test("declares numbers and one required field", async () => {
  const { parameters, description } = await readTool.init()
  expect(z.toJSONSchema(parameters, { io: "input" })).toMatchObject({
    properties: { offset: { type: "integer", minimum: 0 }, limit: { type: "integer", minimum: 1 } },
    required: ["filePath"],
  })
  expect(description.length).toBeLessThan(650)
})

/** One white pixel. */
function png(): Buffer {
  const chunk = (type: string, data: Buffer) => {
    const length = Buffer.alloc(4)
    length.writeUInt32BE(data.length)
    return Buffer.concat([length, Buffer.from(type), data, Buffer.alloc(4)])
  }
  const header = Buffer.from([0, 0, 0, 1, 0, 0, 0, 1, 8, 0, 0, 0, 0])
  const parts = [
    chunk("IHDR", header),
    chunk("IDAT", deflateSync(Buffer.from([0, 255]))),
    chunk("IEND", Buffer.alloc(0)),
  ]
  return Buffer.concat([Buffer.from("\x89PNG\r\n\x1a\n", "latin1"), ...parts])
}
