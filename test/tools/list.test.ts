import { execFileSync } from "node:child_process"
import { mkdir, symlink } from "node:fs/promises"
import { afterEach, beforeEach, expect, test } from "vitest"
import { type FakeContext, fakeContext } from "../../src/testing/context.ts"
import { type TemporaryProject, temporaryProject } from "../../src/testing/project.ts"
import type { ToolResult } from "../../src/tool/tool.ts"
import { listTool } from "../../src/tools/list.ts"

let project: TemporaryProject
let ctx: FakeContext

beforeEach(async () => {
  project = await temporaryProject()
  ctx = fakeContext({ directory: project.directory })
})
afterEach(() => project.remove())

async function list(args: unknown = {}, context = ctx): Promise<ToolResult> {
  const { parameters, execute } = await listTool.init()
  return execute(parameters.parse(args), context)
}

/** Returns the lines after the first, which is the directory itself. */
async function tree(args: unknown = {}): Promise<string[]> {
  return (await list(args)).output.split("\n").slice(1)
}

test("asks for the directory first", async () => {
  await list()
  expect(ctx.asked).toMatchObject([
    { permission: "list", patterns: [project.directory], always: ["*"], paths: [project.directory] },
  ])
  const refusing = fakeContext({
    directory: project.directory,
    onAsk: () => {
      throw new Error("refused")
    },
  })
  await expect(list({ path: "missing" }, refusing)).rejects.toThrow("refused")
})

test("lists directories first, each followed by its entries", async () => {
  for (const name of ["b.ts", "a.ts", "src/util/x.ts", "src/main.ts", ".hidden/y"])
    await project.write(name, "")
  await mkdir(project.path("empty"))
  const { output, title, metadata } = await list()
  expect(output).toBe(
    [
      `${project.directory}/`,
      "  .hidden/",
      "    y",
      "  empty/",
      "  src/",
      "    util/",
      "      x.ts",
      "    main.ts",
      "  a.ts",
      "  b.ts",
    ].join("\n"),
  )
  expect(title).toBe(".")
  expect(metadata).toMatchObject({ count: 9, truncated: false })
})

test("says that a directory is empty", async () => {
  await mkdir(project.path("empty"))
  expect(await tree({ path: "empty" })).toEqual(["  (empty)"])
})

test("leaves out heavy and ignored directories unless they are the path", async () => {
  await project.write(".gitignore", "out/\n*.log\n")
  for (const name of [
    "node_modules/m/i.js",
    ".git/HEAD",
    "out/o.js",
    "sub/dist/d.js",
    "sub/x.log",
    "sub/a.ts",
  ]) {
    await project.write(name, "")
  }
  await project.write("vendor", "a file of that name")
  expect(await tree()).toEqual(["  sub/", "    a.ts", "  .gitignore", "  vendor"])
  expect(await tree({ path: "node_modules" })).toEqual(["  m/", "    i.js"])
  expect(await tree({ path: "out" })).toEqual(["  o.js"])
  expect(await tree({ path: ".git" })).toEqual(["  HEAD"])
})

test("leaves out entries that match ignore", async () => {
  for (const name of ["a.ts", "a.test.ts", "docs/x.md", "src/y.test.ts", "src/z.ts"])
    await project.write(name, "")
  expect(await tree({ ignore: ["*.test.ts", "docs/"] })).toEqual(["  src/", "    z.ts", "  a.ts"])
})

test("keeps the upper levels of a large tree and reports omitted entries", async () => {
  for (let index = 0; index < 60; index++)
    await project.write(`many/${String(index).padStart(2, "0")}.ts`, "")
  for (let index = 0; index < 60; index++)
    await project.write(`more/${String(index).padStart(2, "0")}.ts`, "")
  await project.write("last.ts", "")
  const { output, metadata } = await list()
  const lines = output.split("\n")
  expect(lines.filter((line) => /^ +[\w.]+\/?$/.test(line))).toHaveLength(100)
  expect(lines).toContain("  last.ts")
  expect(lines).toContain("    … 23 more")
  expect(lines.at(-1)).toContain("100 of 123 entries")
  expect(metadata).toMatchObject({ count: 123, truncated: true })
})

test("shows symlinks with their target and does not follow them", async () => {
  await project.write("real/a.ts", "")
  await symlink("real", project.path("link"))
  await symlink("..", project.path("real/up"))
  expect(await tree()).toEqual(["  real/", "    a.ts", "    up -> ..", "  link -> real"])
  expect(await tree({ path: "link" })).toEqual(["  a.ts", "  up -> .."])
})

test("lists pipes, and unusual names on one line", async () => {
  execFileSync("mkfifo", [project.path("pipe")])
  await project.write("a\nb/ü 🙂", "")
  expect(await tree()).toEqual(['  "a\\nb/"', "    ü 🙂", "  pipe"])
})

test("rejects a file or a missing path and says what to do", async () => {
  await project.write("source/a.ts", "")
  await expect(list({ path: "source/a.ts" })).rejects.toThrow("read the file with the read tool")
  await expect(list({ path: "sourc" })).rejects.toThrow(/not found.*\n.*\/source/)
})

test("stops at an abort", async () => {
  const context = fakeContext({ directory: project.directory, abort: AbortSignal.abort() })
  await expect(list({}, context)).rejects.toMatchObject({ code: "aborted" })
})
