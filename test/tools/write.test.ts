import {
  chmod,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  realpath,
  rm,
  stat,
  symlink,
  writeFile,
} from "node:fs/promises"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, test } from "vitest"
import { stampFile } from "../../src/files/file-tracker.ts"
import { type FakeContext, fakeContext } from "../../src/testing/context.ts"
import { writeTool } from "../../src/tools/write.ts"

let directory: string
let ctx: FakeContext

beforeEach(async () => {
  directory = await realpath(await mkdtemp(join(tmpdir(), "tackle-write-")))
  ctx = fakeContext({ directory })
})

afterEach(() => rm(directory, { recursive: true, force: true }))

const at = (name: string) => join(directory, name)

async function write(filePath: string, content: string, context = ctx) {
  return (await writeTool.init()).execute({ filePath, content }, context)
}

/** Creates a file that this session has read. */
async function seen(name: string, content: string | Uint8Array): Promise<string> {
  await writeFile(at(name), content)
  ctx.files.record(at(name), await stampFile(at(name)))
  return at(name)
}

describe("a new file", () => {
  test("is created with its parents, byte for byte", async () => {
    const content = "ä\r\n\ufeff$&\n  no end"
    const result = await write("a/b/new.txt", content)
    expect(await readFile(at("a/b/new.txt"), "utf8")).toBe(content)
    expect(result).toMatchObject({ title: "a/b/new.txt", output: "Created a/b/new.txt (3 lines, 18 bytes)." })
    expect(result.metadata).toMatchObject({
      filePath: at("a/b/new.txt"),
      exists: false,
      file: { path: at("a/b/new.txt"), stamp: await stampFile(at("a/b/new.txt")) },
    })
  })

  test("asks for edit with the path and the diff", async () => {
    await write("new.txt", "one\n")
    expect(ctx.asked).toEqual([
      {
        permission: "edit",
        patterns: [at("new.txt")],
        always: ["*"],
        metadata: { filePath: at("new.txt"), exists: false, diff: expect.stringContaining("+one\n") },
      },
    ])
  })

  test("can be written again at once", async () => {
    await write("new.txt", "one\n")
    expect((await write("new.txt", "two\n")).output).toBe("Overwrote new.txt (1 line, 4 bytes).")
  })

  test("is not created if refused, nor are its parents", async () => {
    const refusing = fakeContext({
      directory,
      onAsk: () => {
        throw new Error("refused")
      },
    })
    await expect(write("a/new.txt", "x", refusing)).rejects.toThrow("refused")
    expect(await readdir(directory)).toEqual([])
  })

  test("that appears in the meantime is kept", async () => {
    const slow = fakeContext({ directory, onAsk: () => writeFile(at("new.txt"), "theirs") })
    await expect(write("new.txt", "ours", slow)).rejects.toMatchObject({ code: "file.changed" })
    expect(await readFile(at("new.txt"), "utf8")).toBe("theirs")
  })
})

describe("an existing file", () => {
  test("that was never read is not overwritten, without asking", async () => {
    await writeFile(at("old.txt"), "precious")
    await expect(write("old.txt", "x")).rejects.toMatchObject({
      code: "file.unread",
      recoverable: true,
      message: expect.stringContaining("First read it with the read tool"),
    })
    expect(await readFile(at("old.txt"), "utf8")).toBe("precious")
    expect(ctx.asked).toEqual([])
  })

  test.each([
    ["Latin-1", Buffer.from("caf\xe9\n", "latin1")],
    ["GBK", Buffer.of(0xc4, 0xe3, 0xba, 0xc3, 0x0a)],
    ["UTF-16 without a mark", Buffer.from("text", "utf16le")],
    ["binary", Buffer.of(0x7f, 0x45, 0x4c, 0x46, 0, 1)],
  ])("in %s is not overwritten, without asking", async (_, bytes) => {
    await seen("old.txt", bytes)
    await expect(write("old.txt", "new\n")).rejects.toThrow(
      expect.objectContaining({ code: "file.unfit", message: expect.stringContaining("delete it first") }),
    )
    expect(await readFile(at("old.txt"))).toEqual(bytes)
    expect(ctx.asked).toEqual([])
  })

  test("that changed since it was read is not overwritten", async () => {
    await seen("old.txt", "one")
    await writeFile(at("old.txt"), "two")
    await expect(write("old.txt", "x")).rejects.toMatchObject({
      code: "file.changed",
      message: expect.stringContaining("Read it again"),
    })
    expect(await readFile(at("old.txt"), "utf8")).toBe("two")
  })

  test("that was only touched is overwritten", async () => {
    await seen("old.txt", "one\n")
    await writeFile(at("old.txt"), "one\n")
    const result = await write("old.txt", "two\n")
    expect(result.metadata).toMatchObject({ exists: true, diff: expect.stringContaining("-one\n+two\n") })
    expect(await readFile(at("old.txt"), "utf8")).toBe("two\n")
  })

  test("that changes while the user is asked is kept", async () => {
    const slow = fakeContext({ directory, files: ctx.files, onAsk: () => writeFile(at("old.txt"), "theirs") })
    await seen("old.txt", "one")
    await expect(write("old.txt", "ours", slow)).rejects.toMatchObject({
      code: "file.changed",
      message: expect.stringContaining("Nothing was written"),
    })
    expect(await readFile(at("old.txt"), "utf8")).toBe("theirs")
  })

  test("that disappears while the user is asked is not created again", async () => {
    const slow = fakeContext({ directory, files: ctx.files, onAsk: () => rm(at("old.txt")) })
    await seen("old.txt", "one")
    await expect(write("old.txt", "ours", slow)).rejects.toMatchObject({ code: "file.changed" })
    expect(await readdir(directory)).toEqual([])
  })

  test("keeps its mode", async () => {
    await seen("run.sh", "a")
    await chmod(at("run.sh"), 0o750)
    await write("run.sh", "b")
    expect((await stat(at("run.sh"))).mode & 0o7777).toBe(0o750)
  })

  test("keeps its byte order mark, which is not doubled", async () => {
    await seen("bom.txt", "\ufeffone")
    await write("bom.txt", "two")
    expect(await readFile(at("bom.txt"), "utf8")).toBe("\ufefftwo")
    await write("bom.txt", "\ufeffthree")
    expect(await readFile(at("bom.txt"), "utf8")).toBe("\ufeffthree")
  })

  test("keeps UTF-16", async () => {
    await seen("wide.txt", Buffer.from("\ufeffone", "utf16le"))
    await write("wide.txt", "zwölf")
    expect(await readFile(at("wide.txt"))).toEqual(Buffer.from("\ufeffzwölf", "utf16le"))
  })

  test.skipIf(process.getuid?.() === 0)("that is read-only stays as it is", async () => {
    await seen("old.txt", "one")
    await chmod(at("old.txt"), 0o444)
    await expect(write("old.txt", "x")).rejects.toMatchObject({ code: "file.access" })
  })
})

describe("links", () => {
  test("stay symlinks: the target is replaced", async () => {
    await seen("real.txt", "one")
    await symlink("real.txt", at("link.txt"))
    const result = await write("link.txt", "two")
    expect((await lstat(at("link.txt"))).isSymbolicLink()).toBe(true)
    expect(await readFile(at("real.txt"), "utf8")).toBe("two")
    expect(result.metadata).toMatchObject({ filePath: at("link.txt"), file: { path: at("real.txt") } })
    expect(ctx.asked[0]?.patterns).toEqual([at("link.txt"), at("real.txt")])
  })

  test("that are dangling are rejected", async () => {
    await symlink("nowhere", at("link.txt"))
    await expect(write("link.txt", "x")).rejects.toMatchObject({ code: "file.unfit" })
    expect((await lstat(at("link.txt"))).isSymbolicLink()).toBe(true)
  })

  test("that change while the user is asked are not followed", async () => {
    await seen("real.txt", "one")
    await seen("other.txt", "one")
    await symlink("real.txt", at("link.txt"))
    const slow = fakeContext({
      directory,
      files: ctx.files,
      onAsk: async () => {
        await rm(at("link.txt"))
        await symlink("other.txt", at("link.txt"))
      },
    })
    await expect(write("link.txt", "two", slow)).rejects.toMatchObject({ code: "file.changed" })
    expect(await readFile(at("real.txt"), "utf8")).toBe("one")
    expect(await readFile(at("other.txt"), "utf8")).toBe("one")
  })

  test("to a parent directory that change are not followed either", async () => {
    await mkdir(at("inside"))
    await mkdir(at("outside"))
    await symlink("inside", at("way"))
    const slow = fakeContext({
      directory,
      onAsk: async () => {
        await rm(at("way"))
        await symlink("outside", at("way"))
      },
    })
    await expect(write("way/new.txt", "x", slow)).rejects.toMatchObject({ code: "file.changed" })
    expect(await readdir(at("outside"))).toEqual([])
  })
})

describe("rejects", () => {
  test("a directory", async () => {
    await mkdir(at("dir"))
    await expect(write("dir", "x")).rejects.toMatchObject({ code: "file.unfit" })
  })

  test("a socket", async () => {
    const server = createServer()
    await new Promise<void>((resolve) => server.listen(at("socket"), resolve))
    try {
      await expect(write("socket", "x")).rejects.toMatchObject({ code: "file.unfit" })
    } finally {
      server.close()
    }
  })

  test("a file in place of a parent", async () => {
    await writeFile(at("file"), "x")
    await expect(write("file/below", "x")).rejects.toMatchObject({ code: "file.access" })
  })
})

test("rejects half a character before asking", async () => {
  await expect(write("new.txt", "a\ud83d")).rejects.toMatchObject({ code: "text.malformed" })
  expect(ctx.asked).toEqual([])
})

test("after an abort nothing is written", async () => {
  const controller = new AbortController()
  const aborting = fakeContext({ directory, abort: controller.signal, onAsk: () => controller.abort() })
  await expect(write("new.txt", "x", aborting)).rejects.toMatchObject({ code: "aborted" })
  expect(await readdir(directory)).toEqual([])
})
