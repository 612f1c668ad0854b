import { symlink, utimes } from "node:fs/promises"
import { afterEach, beforeEach, describe, expect, test } from "vitest"
import { type FakeContext, fakeContext } from "../../src/testing/context.ts"
import { type TemporaryProject, temporaryProject } from "../../src/testing/project.ts"
import type { ToolResult } from "../../src/tool/tool.ts"
import { createGrepTool } from "../../src/tools/grep.ts"
import { createFallbackEngine } from "../../src/tools/search/fallback-engine.ts"
import { createRipgrepEngine } from "../../src/tools/search/ripgrep-engine.ts"

const engines = { ripgrep: createRipgrepEngine(), fallback: createFallbackEngine() }

describe.each(Object.entries(engines))("with %s", (_, engine) => {
  const tool = createGrepTool(engine)
  let project: TemporaryProject
  let ctx: FakeContext

  beforeEach(async () => {
    project = await temporaryProject()
    ctx = fakeContext({ directory: project.directory })
  })
  afterEach(() => project.remove())

  async function grep(args: unknown, context = ctx): Promise<ToolResult> {
    const { parameters, execute } = await tool.init()
    return execute(parameters.parse(args), context)
  }

  test("asks for the pattern and the directory first", async () => {
    await project.write("src/a.ts", "x")
    await grep({ pattern: "x", path: "src" })
    expect(ctx.asked).toMatchObject([
      { permission: "grep", patterns: ["x"], always: ["*"], paths: [project.path("src")] },
    ])
    const refusing = fakeContext({
      directory: project.directory,
      onAsk: () => {
        throw new Error("refused")
      },
    })
    await expect(grep({ pattern: "(", path: "missing" }, refusing)).rejects.toThrow("refused")
  })

  test("groups matches by file, newest first", async () => {
    await project.write("old.ts", "let foo = 1\nno\nfoo()\r\n")
    await project.write("sub/new.ts", "\n  foo\n")
    await utimes(project.path("old.ts"), 0, 1000)
    await utimes(project.path("sub/new.ts"), 0, 2000)
    const { output, title, metadata } = await grep({ pattern: "foo" })
    expect(output).toBe(
      "3 matches in 2 files\n\nsub/new.ts\n  2:   foo\n\nold.ts\n  1: let foo = 1\n  3: foo()",
    )
    expect(title).toBe("foo")
    expect(metadata).toMatchObject({ matches: 3, files: 2, truncated: false })
  })

  test("returns a result without matches", async () => {
    await project.write("a.ts", "x")
    const { output, metadata } = await grep({ pattern: "absent" })
    expect(output).toBe("No matches found")
    expect(metadata).toMatchObject({ matches: 0, files: 0, truncated: false })
  })

  test("searches a file given as path, whatever include says", async () => {
    await project.write("src/a.ts", "foo")
    await project.write("src/b.ts", "foo")
    expect((await grep({ pattern: "foo", path: "src/a.ts", include: "*.md" })).output).toBe(
      "1 match in 1 file\n\nsrc/a.ts\n  1: foo",
    )
  })

  test("filters files by include, without finding ignored files", async () => {
    for (const name of ["a.ts", "b.tsx", "c.js", "src/d.ts", "gen.ts", ".hidden.ts"])
      await project.write(name, "foo")
    await project.write(".gitignore", "gen.ts\n")
    const files = async (include: string) =>
      (await grep({ pattern: "foo", include })).output.match(/^[\w./]+$/gm)?.sort() ?? []
    expect(await files("*.ts")).toEqual([".hidden.ts", "a.ts", "src/d.ts"])
    expect(await files("*.{ts,tsx}")).toEqual([".hidden.ts", "a.ts", "b.tsx", "src/d.ts"])
    expect(await files("src/**/*.ts")).toEqual(["src/d.ts"])
    expect(await files("**")).toEqual([".hidden.ts", "a.ts", "b.tsx", "c.js", "src/d.ts"])
    expect(await files("!*.ts")).toEqual(["b.tsx", "c.js"])
    expect(await files("*.{js}")).toEqual(["c.js"])
    expect(await files("{src/d,a}.ts")).toEqual(["a.ts", "src/d.ts"])
  })

  test("shows a hundred of many matches and counts all", async () => {
    await project.write("a.txt", "foo\n".repeat(150))
    await project.write("b.txt", "foo\n".repeat(50))
    await utimes(project.path("a.txt"), 0, 1000)
    await utimes(project.path("b.txt"), 0, 2000)
    const { output, metadata } = await grep({ pattern: "foo" })
    expect(output.split("\n")[0]).toContain("Showing 100 of 200 matches in 2 files")
    expect(output.match(/^ {2}\d+: foo$/gm)).toHaveLength(100)
    expect(output.match(/\n\n.*\.txt/g)).toEqual(["\n\nb.txt", "\n\na.txt"])
    expect(metadata).toMatchObject({ matches: 200, files: 2, truncated: true })
  })

  test("shows exactly a hundred matches completely", async () => {
    await project.write("a.txt", "foo\n".repeat(100))
    expect((await grep({ pattern: "foo" })).metadata).toMatchObject({ matches: 100, truncated: false })
  })

  test("cuts long lines and long output", async () => {
    await project.write("a.txt", `foo${"x".repeat(5000)}\n`.repeat(60))
    const { output, metadata } = await grep({ pattern: "foo" })
    expect(output).toContain(`  1: foo${"x".repeat(1997)}\n`)
    expect(Buffer.byteLength(output)).toBeLessThan(52_000)
    expect(metadata).toMatchObject({ matches: 60, truncated: true })
  })

  test("reports a lower bound for a file with too many matches", async () => {
    await project.write("a.txt", "foo\n".repeat(10_001))
    const { output, metadata } = await grep({ pattern: "foo" })
    expect(output).toContain("Showing 100 of more than 10000 matches")
    expect(metadata).toMatchObject({ truncated: true })
  })

  test("stops after 10 MB of text", async () => {
    const line = `foo${"x".repeat(1990)}\n`
    for (let index = 0; index < 70; index++) await project.write(`${index}.txt`, line.repeat(100))
    const { output, metadata } = await grep({ pattern: "foo" })
    expect(output).toContain("more than")
    expect(metadata?.matches).toBeLessThan(7000)
  })

  test("explains an invalid pattern", async () => {
    await expect(grep({ pattern: "foo(" })).rejects.toMatchObject({ code: "search.pattern" })
    await expect(grep({ pattern: "foo(" })).rejects.toThrow(/foo\(\n.*(unclosed|[Uu]nterminated)/s)
  })

  test("silently leaves out files with secrets", async () => {
    for (const name of [".env", "sub/.env.local", "prod.env"]) await project.write(name, "KEY=secret")
    await project.write(".env.example", "KEY=none")
    const { output, metadata } = await grep({ pattern: "KEY=" })
    expect(output).toBe("1 match in 1 file\n\n.env.example\n  1: KEY=none")
    expect(metadata).toMatchObject({ matches: 1, files: 1, truncated: false })
    expect((await grep({ pattern: "KEY=", include: ".env*", path: "sub" })).output).toBe("No matches found")
    // The output must not reveal whether a pattern matches in such a file.
    expect((await grep({ pattern: "secret" })).output).toBe((await grep({ pattern: "other" })).output)
  })

  test("asks to read a secret file given as path, also through a symlink", async () => {
    await project.write(".env", "KEY=secret")
    await symlink(project.path(".env"), project.path("harmless.txt"))
    for (const path of [".env", "harmless.txt"]) {
      const context = fakeContext({ directory: project.directory })
      expect((await grep({ pattern: "KEY", path }, context)).output).toContain("1: KEY=secret")
      expect(context.asked.map(({ permission, patterns }) => [permission, patterns])).toEqual([
        ["grep", ["KEY"]],
        ["read", [project.path(path)]],
      ])
    }
  })

  test("handles unusual names and patterns", async () => {
    await project.write("a\nb.txt", "-v foo")
    const { output } = await grep({ pattern: "-v" })
    expect(output).toBe('1 match in 1 file\n\n"a\\nb.txt"\n  1: -v foo')
  })

  test("suggests similar names for a missing path", async () => {
    await project.write("source/a.ts", "")
    await expect(grep({ pattern: "x", path: "Source" })).rejects.toThrow(/not found.*\n.*\/source/)
  })

  test("stops at an abort", async () => {
    const context = fakeContext({ directory: project.directory, abort: AbortSignal.abort() })
    await expect(grep({ pattern: "x" }, context)).rejects.toMatchObject({ code: "aborted" })
  })
})
