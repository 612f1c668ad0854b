import {
  chmod,
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
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, test } from "vitest"
import { stampFile } from "../../src/files/file-tracker.ts"
import { type FakeContext, fakeContext } from "../../src/testing/context.ts"
import { applyPatchTool } from "../../src/tools/apply-patch/apply-patch.ts"
import { editTool } from "../../src/tools/edit/edit.ts"

let directory: string
let ctx: FakeContext

beforeEach(async () => {
  directory = await realpath(await mkdtemp(join(tmpdir(), "tackle-patch-")))
  ctx = fakeContext({ directory })
})

afterEach(() => rm(directory, { recursive: true, force: true }))

const at = (name: string) => join(directory, name)
const text = (name: string) => readFile(at(name), "utf8")

async function patch(lines: readonly string[], context = ctx) {
  const patchText = ["*** Begin Patch", ...lines, "*** End Patch", ""].join("\n")
  return (await applyPatchTool.init()).execute({ patchText }, context)
}

async function write(name: string, content: string | Uint8Array, options: { seen?: boolean } = {}) {
  await mkdir(join(at(name), ".."), { recursive: true })
  await writeFile(at(name), content)
  if (options.seen ?? true) ctx.files.record(at(name), await stampFile(at(name)))
}

/** Every file with its bytes and mode, as one value. */
async function snapshot(): Promise<Record<string, string>> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true })
  const files = await Promise.all(
    entries.map(async (entry) => {
      const path = join(entry.parentPath, entry.name)
      const { mode } = await stat(path)
      const bytes = entry.isFile() ? (await readFile(path)).toString("base64") : "directory"
      return [path.slice(directory.length + 1), `${mode.toString(8)} ${bytes}`]
    }),
  )
  return Object.fromEntries(files.sort())
}

test("adds, updates, moves and deletes files with one permission request", async () => {
  await write("a.txt", "one\ntwo\n")
  await write("old.sh", "echo 1\n")
  await chmod(at("old.sh"), 0o750)
  await write("gone.txt", "x\n")
  const result = await patch([
    "*** Add File: new/deep/n.txt",
    "+first",
    "+",
    "*** Update File: a.txt",
    " one",
    "-two",
    "+zwei",
    "*** Update File: old.sh",
    "*** Move to: bin/new.sh",
    "-echo 1",
    "+echo 2",
    "*** Delete File: gone.txt",
  ])
  expect(await text("new/deep/n.txt")).toBe("first\n\n")
  expect(await text("a.txt")).toBe("one\nzwei\n")
  expect(await text("bin/new.sh")).toBe("echo 2\n")
  expect((await stat(at("bin/new.sh"))).mode & 0o777).toBe(0o750)
  expect((await readdir(directory)).sort()).toEqual(["a.txt", "bin", "new"])
  expect(result.output).toBe(
    "Applied the patch:\nA new/deep/n.txt\nM a.txt\nR old.sh -> bin/new.sh\nD gone.txt",
  )
  expect(ctx.asked).toEqual([
    {
      permission: "edit",
      patterns: ["new/deep/n.txt", "a.txt", "old.sh", "bin/new.sh", "gone.txt"].map(at),
      always: ["*"],
      metadata: {
        filePath: expect.any(String),
        diff: expect.stringMatching(
          /\+first\n[\s\S]*-two\n\+zwei[\s\S]*rename to bin\/new\.sh[\s\S]*\/dev\/null/,
        ),
      },
    },
  ])
  expect(result.metadata?.changes).toMatchObject([
    { type: "add", filePath: at("new/deep/n.txt") },
    { type: "update" },
    { type: "move", filePath: at("old.sh"), movePath: at("bin/new.sh"), relativePath: "old.sh" },
    { type: "delete" },
  ])
})

test('does not offer "always" if the diff of a file is cut', async () => {
  const lines = Array.from({ length: 3_000 }, (_, index) => `+line number ${index}`)
  await patch(["*** Add File: small.txt", "+x", "*** Add File: large.txt", ...lines])
  expect(ctx.asked).toMatchObject([
    { permission: "edit", always: [], metadata: { diff: expect.stringContaining("[The diff is cut here") } },
  ])
})

test("allows the next edit of written files, and records them for a resumed session", async () => {
  await write("a.txt", "one\n")
  const result = await patch(["*** Add File: n.txt", "+x", "*** Update File: a.txt", "-one", "+two"])
  const stamps = await Promise.all(["n.txt", "a.txt"].map(async (name) => stampFile(at(name))))
  expect(result.metadata?.files).toEqual([
    { path: at("n.txt"), stamp: stamps[0] },
    { path: at("a.txt"), stamp: stamps[1] },
  ])
  const edit = { filePath: "a.txt", oldString: "two", newString: "three", replaceAll: false }
  await (await editTool.init()).execute(edit, ctx)
  expect(await text("a.txt")).toBe("three\n")
})

test("keeps byte order mark, UTF-16, line endings and mode", async () => {
  const utf16 = Buffer.concat([Buffer.of(0xff, 0xfe), Buffer.from("ä\r\nb\r\n", "utf16le")])
  await write("u.txt", utf16)
  await write("b.txt", "\ufeffone\r\ntwo")
  await chmod(at("b.txt"), 0o640)
  await patch(["*** Update File: u.txt", "-b", "+c", "*** Update File: b.txt", " one", "+mid"])
  const expected = Buffer.concat([Buffer.of(0xff, 0xfe), Buffer.from("ä\r\nc\r\n", "utf16le")])
  expect(await readFile(at("u.txt"))).toEqual(expected)
  expect(await text("b.txt")).toBe("\ufeffone\r\nmid\r\ntwo")
  expect((await stat(at("b.txt"))).mode & 0o777).toBe(0o640)
})

describe("an unread file", () => {
  test("is changed if all lines match exactly, and stays unread", async () => {
    await write("a.txt", "one\ntwo\n", { seen: false })
    await patch(["*** Update File: a.txt", " one", "-two", "+zwei"])
    expect(await text("a.txt")).toBe("one\nzwei\n")
    const edit = { filePath: "a.txt", oldString: "one", newString: "x", replaceAll: false }
    await expect((await editTool.init()).execute(edit, ctx)).rejects.toMatchObject({ code: "file.unread" })
  })

  test("is rejected if the lines do not match exactly, or for deletion", async () => {
    await write("a.txt", "  one\n", { seen: false })
    await expect(patch(["*** Update File: a.txt", "-one", "+two"])).rejects.toMatchObject({
      code: "file.unread",
    })
    await expect(patch(["*** Delete File: a.txt"])).rejects.toMatchObject({ code: "file.unread" })
    expect(ctx.asked).toEqual([])
  })

  test("can be moved", async () => {
    await write("a.bin", Buffer.of(0, 255, 1), { seen: false })
    await patch(["*** Update File: a.bin", "*** Move to: b.bin"])
    expect(await readFile(at("b.bin"))).toEqual(Buffer.of(0, 255, 1))
    expect(await readdir(directory)).toEqual(["b.bin"])
  })
})

test("tells what to do about a missing file: create it, or do not delete it", async () => {
  await expect(patch(["*** Update File: no.txt", "-x", "+y"])).rejects.toThrow(/or create the file with/)
  await expect(patch(["*** Delete File: no.txt"])).rejects.toThrow(/or remove the section/)
})

describe("changes nothing and asks nothing", () => {
  test.each([
    ["if a hunk does not match", ["*** Update File: b.txt", "-nope", "+x"], "patch.mismatch"],
    ["if an added file exists", ["*** Add File: b.txt", "+x"], "file.exists"],
    ["if the target of a move exists", ["*** Update File: b.txt", "*** Move to: c.txt"], "file.exists"],
    ["if a file is missing", ["*** Update File: no.txt", "-x", "+y"], "file.missing"],
    ["if a deleted file is missing", ["*** Delete File: no.txt"], "file.missing"],
    ["if a file is named twice", ["*** Delete File: b.txt", "*** Add File: b.txt"], "file.unfit"],
    [
      "where a file is named by a link as well",
      ["*** Update File: b.txt", "-b", "+x", "*** Update File: link", "-b", "+y"],
      "file.unfit",
    ],
    ["if a link would be deleted", ["*** Delete File: link"], "file.unfit"],
    ["if a path is a directory", ["*** Update File: dir", "-x", "+y"], "file.unfit"],
    ["if a file is not text", ["*** Update File: bin", "-x", "+y"], "file.unfit"],
    ["if the patch is invalid", ["nonsense"], "patch.syntax"],
  ])("%s", async (_, lines, code) => {
    await write("a.txt", "a\n")
    await write("b.txt", "b\n")
    await write("c.txt", "c\n")
    await write("bin", Buffer.of(0, 1, 120, 10))
    await mkdir(at("dir"))
    await symlink("b.txt", at("link"))
    const before = await snapshot()
    await expect(patch(["*** Update File: a.txt", "-a", "+A", ...lines])).rejects.toMatchObject({ code })
    expect(await snapshot()).toEqual(before)
    expect(ctx.asked).toEqual([])
  })
})

test("follows a link to change content", async () => {
  await write("real/a.txt", "a\n")
  await symlink("real/a.txt", at("link"))
  await patch(["*** Update File: link", "-a", "+A"])
  expect(await text("real/a.txt")).toBe("A\n")
  expect(await realpath(at("link"))).toBe(at("real/a.txt"))
})

test("changes nothing if the user refuses", async () => {
  await write("a.txt", "a\n")
  const before = await snapshot()
  const refusing = fakeContext({
    directory,
    files: ctx.files,
    onAsk: () => {
      throw new Error("refused")
    },
  })
  await expect(
    patch(["*** Update File: a.txt", "-a", "+A", "*** Add File: d/n", "+x"], refusing),
  ).rejects.toThrow("refused")
  expect(await snapshot()).toEqual(before)
})

test.each([
  ["changed", () => writeFile(at("b.txt"), "theirs\n")],
  ["removed", () => rm(at("b.txt"))],
  ["created", () => writeFile(at("n.txt"), "theirs\n")],
])("changes nothing if a file was %s during the permission request", async (_, meanwhile) => {
  await write("a.txt", "a\n")
  await write("b.txt", "b\n")
  let before = {}
  const slow = fakeContext({
    directory,
    files: ctx.files,
    onAsk: async () => {
      await meanwhile()
      before = await snapshot()
    },
  })
  const lines = ["*** Update File: a.txt", "-a", "+A", "*** Update File: b.txt", "-b", "+B"]
  await expect(patch([...lines, "*** Add File: n.txt", "+x"], slow)).rejects.toMatchObject({
    code: "file.changed",
  })
  expect(await snapshot()).toEqual(before)
})

test("restores content, modes, times and directories after a failure", async () => {
  await write("a.txt", "a\n")
  await chmod(at("a.txt"), 0o604)
  await write("gone.txt", "g\n")
  await write("m.txt", "m\n")
  const [before, { mtimeMs, ino }] = [await snapshot(), await stat(at("a.txt"))]
  // "x" cannot become a file: by then it is the directory of "x/y".
  const lines = [
    ["*** Update File: a.txt", "-a", "+A"],
    ["*** Add File: p/q/n.txt", "+n"],
    ["*** Delete File: gone.txt"],
    ["*** Update File: m.txt", "*** Move to: p/m.txt"],
    ["*** Add File: x/y", "+y", "*** Add File: x", "+x"],
  ].flat()
  await expect(patch(lines)).rejects.toMatchObject({
    code: "file.access",
    message: expect.stringMatching(/No file was changed/),
  })
  expect(await snapshot()).toEqual(before)
  expect(await stat(at("a.txt"))).toMatchObject({ mtimeMs, ino })
  expect(ctx.files.seen(at("a.txt"))).toEqual(await stampFile(at("a.txt")))
})

test("runs patches of the same files one after the other, without deadlock", async () => {
  await write("a.txt", "0\n")
  await write("b.txt", "0\n")
  const next = (first: string, second: string, from: number) =>
    patch([
      `*** Update File: ${first}`,
      `-${from}`,
      `+${from + 1}`,
      `*** Update File: ${second}`,
      `-${from}`,
      `+${from + 1}`,
    ])
  await Promise.all([
    next("a.txt", "b.txt", 0),
    next("b.txt", "a.txt", 1),
    next("a.txt", "b.txt", 2),
    next("b.txt", "a.txt", 3),
  ])
  expect([await text("a.txt"), await text("b.txt")]).toEqual(["4\n", "4\n"])
})

test("reports inexact matches with their changes", async () => {
  await write("a.txt", "if x:\n    one()\n")
  const result = await patch(["*** Update File: a.txt", "-one()", "+two()"])
  expect(await text("a.txt")).toBe("if x:\n    two()\n")
  expect(result.output).toMatch(
    /M a\.txt\n {2}matched only after differences.*line 2 \(normalized-lines\)[\s\S]*\+ {4}two\(\)/,
  )
})
