import { symlink, utimes } from "node:fs/promises"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, test } from "vitest"
import { type FakeContext, fakeContext } from "../../src/testing/context.ts"
import { type TemporaryProject, temporaryProject } from "../../src/testing/project.ts"
import type { ToolResult } from "../../src/tool/tool.ts"
import { createGlobTool } from "../../src/tools/glob.ts"
import { createFallbackEngine } from "../../src/tools/search/fallback-engine.ts"
import { createRipgrepEngine } from "../../src/tools/search/ripgrep-engine.ts"

const engines = { ripgrep: createRipgrepEngine(), fallback: createFallbackEngine() }

describe.each(Object.entries(engines))("with %s", (_, engine) => {
  const tool = createGlobTool(engine)
  let project: TemporaryProject
  let ctx: FakeContext

  beforeEach(async () => {
    project = await temporaryProject()
    ctx = fakeContext({ directory: project.directory })
  })
  afterEach(() => project.remove())

  async function glob(args: unknown, context = ctx): Promise<ToolResult> {
    const { parameters, execute } = await tool.init()
    return execute(parameters.parse(args), context)
  }

  async function found(args: unknown): Promise<string[]> {
    return (await glob(args)).output.split("\n").sort()
  }

  test("asks for the pattern and the directory first", async () => {
    await glob({ pattern: "*.ts" })
    expect(ctx.asked).toMatchObject([
      { permission: "glob", patterns: ["*.ts"], always: ["*"], paths: [project.directory] },
    ])
    const refusing = fakeContext({
      directory: project.directory,
      onAsk: () => {
        throw new Error("refused")
      },
    })
    await expect(glob({ pattern: "*", path: "missing" }, refusing)).rejects.toThrow("refused")
  })

  test("matches patterns with and without directories", async () => {
    for (const name of ["a.ts", "b.js", "src/c.ts", "src/deep/d.ts", "src/.hidden/e.ts"])
      await project.write(name, "")
    expect(await found({ pattern: "*.ts" })).toEqual([
      "a.ts",
      "src/.hidden/e.ts",
      "src/c.ts",
      "src/deep/d.ts",
    ])
    expect(await found({ pattern: "./*.ts" })).toEqual(["a.ts"])
    expect(await found({ pattern: "src/*.ts" })).toEqual(["src/c.ts"])
    expect(await found({ pattern: "**/*.{js,ts}", path: "src/deep" })).toEqual(["src/deep/d.ts"])
    expect(await found({ pattern: "src/" })).toHaveLength(3)
  })

  test("does not find ignored files", async () => {
    await project.write(".gitignore", "*.log\nnode_modules\n")
    await project.write("x.log", "")
    await project.write("node_modules/m/index.js", "")
    expect(await found({ pattern: "**" })).toEqual([".gitignore"])
    expect(await found({ pattern: "*.log" })).toEqual(["No files found"])
    expect(await found({ pattern: "*", path: "node_modules" })).toEqual(["node_modules/m/index.js"])
  })

  test("sorts newest first", async () => {
    for (const [index, name] of ["old.ts", "new.ts", "middle.ts"].entries()) {
      await project.write(name, "")
      await utimes(project.path(name), 0, [1000, 3000, 2000][index] ?? 0)
    }
    expect((await glob({ pattern: "*.ts" })).output.split("\n")).toEqual(["new.ts", "middle.ts", "old.ts"])
  })

  test("shows the newest hundred of many files, with the total", async () => {
    for (let index = 0; index < 250; index++) {
      await project.write(`${index}.ts`, "")
      await utimes(project.path(`${index}.ts`), 0, 1000 + index)
    }
    const { output, metadata } = await glob({ pattern: "*.ts" })
    const lines = output.split("\n")
    expect(lines.slice(0, 100)).toEqual(Array.from({ length: 100 }, (_, index) => `${249 - index}.ts`))
    expect(lines.slice(100).join()).toContain("100 of 250 files")
    expect(metadata).toMatchObject({ count: 250, truncated: true })
  })

  test("shows exactly a hundred files completely", async () => {
    for (let index = 0; index < 100; index++) await project.write(`${index}.ts`, "")
    expect((await glob({ pattern: "*.ts" })).metadata).toMatchObject({ count: 100, truncated: false })
  })

  test("accepts a file as path", async () => {
    await project.write("src/a.ts", "")
    await project.write("src/b.ts", "")
    expect(await found({ pattern: "*.ts", path: "src/a.ts" })).toEqual(["src/a.ts"])
    expect(await found({ pattern: "*.js", path: "src/a.ts" })).toEqual(["No files found"])
  })

  test("suggests similar names for a missing path", async () => {
    await project.write("source/a.ts", "")
    await expect(glob({ pattern: "*", path: "sorce" })).rejects.toThrow(/not found.*\n.*\/source/)
  })

  test("asks for the directory of a pattern outside the working directory, and returns absolute paths", async () => {
    await project.write("lib/x.conf", "")
    await project.write("lib/deep/y.conf", "")
    await project.write("app/a.ts", "")
    const inApp = fakeContext({ directory: project.path("app") })
    for (const pattern of ["../lib/*.conf", `${project.directory}/lib/*.conf`, "../lib/x.conf"]) {
      expect((await glob({ pattern }, inApp)).output).toBe(project.path("lib/x.conf"))
      expect(inApp.asked.at(-1)?.paths).toEqual([project.path("lib")])
    }
  })

  test("matches brackets and parentheses literally", async () => {
    await project.write("app/[id]/(group)/page.tsx", "")
    expect(await found({ pattern: "app/[id]/(group)/*.tsx" })).toEqual(["app/[id]/(group)/page.tsx"])
  })

  test("shows a name with a line break on one line", async () => {
    await project.write("a\nb.ts", "")
    expect(await found({ pattern: "*.ts" })).toEqual(['"a\\nb.ts"'])
  })

  test("follows a symlink to a directory only if it is the path", async () => {
    await project.write("real/a.ts", "")
    await symlink(project.path("real"), project.path("link"))
    expect(await found({ pattern: "**/*.ts" })).toEqual(["real/a.ts"])
    expect(await found({ pattern: "**/*.ts", path: "link" })).toEqual([join("link", "a.ts")])
  })

  test("stops at an abort", async () => {
    const context = fakeContext({ directory: project.directory, abort: AbortSignal.abort() })
    await expect(glob({ pattern: "*" }, context)).rejects.toMatchObject({ code: "aborted" })
  })
})
