import { execFileSync } from "node:child_process"
import { mkdir, symlink } from "node:fs/promises"
import { relative } from "node:path"
import { afterEach, beforeEach, describe, expect, test } from "vitest"
import { type TemporaryProject, temporaryProject } from "../../src/testing/project.ts"
import {
  type FileMatches,
  InvalidPatternError,
  type SearchEngine,
  type TextQuery,
} from "../../src/tools/search/search-engine.ts"
import { AbortedError } from "../../src/util/abort.ts"

/** The behavior of every search engine. */
export function searchEngineSuite(name: string, engine: SearchEngine): void {
  describe(name, () => {
    let project: TemporaryProject

    beforeEach(async () => {
      project = await temporaryProject()
    })
    afterEach(() => project.remove())

    function query(overrides: Partial<TextQuery> = {}): TextQuery {
      return {
        root: { path: project.directory, kind: "directory" },
        accepts: () => true,
        signal: new AbortController().signal,
        onUnreadable: () => {},
        pattern: "needle",
        maxLines: 100,
        maxCount: 10_000,
        maxLineLength: 2000,
        ...overrides,
      }
    }

    async function files(overrides: Partial<TextQuery> = {}): Promise<string[]> {
      const paths = await collected(engine.files(query(overrides)))
      return paths.map((path) => relative(project.directory, path)).sort()
    }

    async function search(overrides: Partial<TextQuery> = {}): Promise<FileMatches[]> {
      const found = await collected(engine.search(query(overrides)))
      return found
        .map((file) => ({ ...file, path: relative(project.directory, file.path) }))
        .sort((a, b) => (a.path < b.path ? -1 : 1))
    }

    async function matches(pattern: string): Promise<string[]> {
      return (await search({ pattern })).flatMap((file) => file.lines.map(({ text }) => text))
    }

    test("finds files at every depth, including hidden ones, without .git and ignored files", async () => {
      await project.write("a.ts", "")
      await project.write("sub/.hidden/b.ts", "")
      await project.write(".git/HEAD", "")
      await project.write(".git/config", "needle")
      await project.write(".gitignore", "*.log\n/built/\n")
      await project.write("x.log", "")
      await project.write("built/c.ts", "")
      await project.write("sub/built/d.ts", "")
      expect(await files()).toEqual([".gitignore", "a.ts", "sub/.hidden/b.ts", "sub/built/d.ts"])
    })

    test("returns only accepted files, by relative path", async () => {
      await project.write("sub/a.ts", "needle")
      await project.write("b.ts", "needle")
      const seen: string[] = []
      const accepts = (path: string) => {
        seen.push(path)
        return path === "sub/a.ts"
      }
      expect(await files({ accepts })).toEqual(["sub/a.ts"])
      expect(seen.sort()).toEqual(["b.ts", "sub/a.ts"])
      expect((await search({ accepts })).map(({ path }) => path)).toEqual(["sub/a.ts"])
    })

    test("gives deeper ignore files precedence and applies those above the root", async () => {
      await project.write(".git/HEAD", "")
      await project.write(".git/info/exclude", "private.txt\n")
      await project.write(".gitignore", "*.log\n")
      await project.write("sub/.gitignore", "!keep.log\n")
      await project.write("sub/keep.log", "")
      await project.write("sub/drop.log", "")
      await project.write("sub/private.txt", "")
      await project.write("sub/deep/drop.log", "")
      expect(await files({ root: { path: project.path("sub"), kind: "directory" } })).toEqual([
        "sub/.gitignore",
        "sub/keep.log",
      ])
    })

    test("lets .ignore override .gitignore", async () => {
      await project.write(".gitignore", "dist/\n")
      await project.write(".ignore", "!dist/\n")
      await project.write("dist/a.js", "")
      expect(await files()).toContain("dist/a.js")
    })

    test("ignores the rules of an outer repository in a nested one", async () => {
      await project.write(".git/HEAD", "")
      await project.write(".gitignore", "*.log\n")
      await project.write("inner/.git/HEAD", "")
      await project.write("inner/x.log", "")
      expect(await files()).toContain("inner/x.log")
      expect(await files({ root: { path: project.path("inner"), kind: "directory" } })).toEqual([
        "inner/x.log",
      ])
    })

    test.each(["modules/\n", "modules/**\n", "modules\n"])(
      "searches a root that is ignored itself (%j)",
      async (rule) => {
        await project.write(".gitignore", rule)
        await project.write("modules/pkg/a.js", "needle")
        expect(await files()).toEqual([".gitignore"])
        for (const root of ["modules", "modules/pkg"]) {
          expect(await files({ root: { path: project.path(root), kind: "directory" } })).toEqual([
            "modules/pkg/a.js",
          ])
        }
      },
    )

    test("searches a file as root, even if it is ignored", async () => {
      await project.write(".gitignore", "*.log\n")
      await project.write("x.log", "one\nneedle\n")
      await project.write("a.ts", "needle")
      const root = { path: project.path("x.log"), kind: "file" as const }
      expect(await files({ root })).toEqual(["x.log"])
      expect(await search({ root })).toEqual([
        { path: "x.log", count: 1, lines: [{ line: 2, text: "needle" }] },
      ])
    })

    test("follows a link only as root", async () => {
      await project.write("real/a.ts", "needle")
      await symlink(project.path("real"), project.path("link"))
      await symlink(project.path("real/a.ts"), project.path("b.ts"))
      expect(await files()).toEqual(["real/a.ts"])
      expect(await files({ root: { path: project.path("link"), kind: "directory" } })).toEqual(["link/a.ts"])
      expect(
        (await search({ root: { path: project.path("b.ts"), kind: "file" } })).map(({ path }) => path),
      ).toEqual(["b.ts"])
    })

    test("returns unusual names completely", async () => {
      const names = ["with space.ts", "new\nline.ts", "-dash.ts", "grüße 🙂.ts", "[id].ts", 'quo"te.ts']
      for (const name of names) await project.write(name, "needle")
      expect(await files()).toEqual([...names].sort())
      expect((await search()).map(({ path }) => path)).toEqual([...names].sort())
    })

    test("does not block on a named pipe", async () => {
      execFileSync("mkfifo", [project.path("pipe")])
      await project.write("a.ts", "needle")
      expect((await search()).map(({ path }) => path)).toEqual(["a.ts"])
    })

    test("finds nothing in an empty directory", async () => {
      await mkdir(project.path("empty"))
      const root = { path: project.path("empty"), kind: "directory" as const }
      expect(await files({ root })).toEqual([])
      expect(await search({ root })).toEqual([])
    })

    test("returns matching lines with their numbers, without line ends", async () => {
      await project.write("a.txt", "needle one\nnothing\r\nneedle two\r\n  needle three")
      expect(await search()).toEqual([
        {
          path: "a.txt",
          count: 3,
          lines: [
            { line: 1, text: "needle one" },
            { line: 3, text: "needle two" },
            { line: 4, text: "  needle three" },
          ],
        },
      ])
    })

    test("matches the end of a line before its CR", async () => {
      await project.write("a.txt", "ends needle\r\nneedle not\r\n")
      expect(await matches("needle$")).toEqual(["ends needle"])
    })

    test("keeps and counts lines up to their limits", async () => {
      await project.write("a.txt", "needle\n".repeat(500))
      const [few] = await search({ maxLines: 3 })
      expect(few).toMatchObject({ count: 500 })
      expect(few?.lines.map(({ line }) => line)).toEqual([1, 2, 3])
      const [counted] = await search({ maxLines: 3, maxCount: 10 })
      expect(counted?.count).toBe(10)
    })

    test("returns the number and start of a one-megabyte line", async () => {
      await project.write("min.js", `one\nneedle "quoted" ü ${"\\x".repeat(500_000)}\ntwo needle`)
      const [found] = await search({ maxLineLength: 50 })
      expect(found?.lines.map(({ line }) => line)).toEqual([2, 3])
      expect(found?.lines[0]?.text).toBe(`needle "quoted" ü ${"\\x".repeat(16)}`)
    })

    test("counts many matches on one line once", async () => {
      await project.write("a.txt", `first\n${"a".repeat(9000)}\n`)
      expect(await search({ pattern: "a", maxLineLength: 5 })).toEqual([
        { path: "a.txt", count: 1, lines: [{ line: 2, text: "aaaaa" }] },
      ])
    })

    test("skips binary files, even if the match comes first or the file is the root", async () => {
      await project.write("early.bin", Buffer.from("needle\n\0\0\0\nneedle\n"))
      await project.write("late.bin", Buffer.from(`needle\n${"text\n".repeat(2000)}\0needle\n`))
      expect(await search()).toEqual([])
      expect(await search({ root: { path: project.path("early.bin"), kind: "file" } })).toEqual([])
    })

    test("treats UTF-16 and UTF-8 with a byte order mark as text", async () => {
      await project.write("16le.txt", Buffer.from("\ufeffneedle ü\r\n", "utf16le"))
      await project.write("16be.txt", Buffer.from("\ufeffneedle ö\r\n", "utf16le").swap16())
      await project.write("8.txt", "\ufeffneedle ä\n")
      expect(await matches("^needle")).toEqual(["needle ö", "needle ü", "needle ä"])
    })

    test("finds invalid UTF-8 and shows replacement characters", async () => {
      await project.write("latin.txt", Buffer.from("needle \xfcber\n", "latin1"))
      expect(await matches("needle")).toEqual(["needle \ufffdber"])
    })

    test("accepts a pattern that looks like an option", async () => {
      await project.write("a.txt", "--files is here\n-e too\n")
      expect(await matches("--files")).toEqual(["--files is here"])
      expect(await matches("-e")).toEqual(["-e too"])
    })

    test("supports common regular expression syntax", async () => {
      await project.write("a.txt", 'Foo bar\nfoo(1)\nprice: 10\n"quoted"\nÄrger\n')
      expect(await matches("(?i)FOO\\b")).toEqual(["Foo bar", "foo(1)"])
      expect(await matches("foo\\(\\d\\)")).toEqual(["foo(1)"])
      expect(await matches("[[:digit:]]{2}$")).toEqual(["price: 10"])
      expect(await matches('\\"quoted\\"')).toEqual(['"quoted"'])
      expect(await matches("foo(?=\\()")).toEqual(["foo(1)"])
      expect(await matches("^\\p{Lu}rger")).toEqual(["Ärger"])
    })

    test.each(["foo(", "[z-a]", "a\\nb", "a{2,1}"])("rejects %j with a reason", async (pattern) => {
      await project.write("a.txt", "a")
      const error = await search({ pattern }).catch((thrown: unknown) => thrown)
      expect(error).toBeInstanceOf(InvalidPatternError)
      expect(String(error)).toContain(pattern)
      expect(String(error)).not.toContain("PCRE2")
    })

    test("throws when aborted, before and during the search", async () => {
      for (let index = 0; index < 50; index++) await project.write(`${index}.txt`, "needle\n")
      const before = AbortSignal.abort()
      await expect(files({ signal: before })).rejects.toBeInstanceOf(AbortedError)
      await expect(search({ signal: before })).rejects.toBeInstanceOf(AbortedError)

      for (const work of [files, search]) {
        const controller = new AbortController()
        const accepts = () => {
          controller.abort()
          return true
        }
        await expect(work({ signal: controller.signal, accepts })).rejects.toBeInstanceOf(AbortedError)
      }
    })

    test("ends the search when the loop ends", async () => {
      for (let index = 0; index < 50; index++) await project.write(`${index}.txt`, "needle\n")
      let seen = 0
      for await (const _ of engine.files(query())) {
        seen += 1
        break
      }
      for await (const _ of engine.search(query())) {
        seen += 1
        break
      }
      expect(seen).toBe(2)
    })
  })
}

/** Collects all items that an engine yields. */
export async function collected<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = []
  for await (const item of items) all.push(item)
  return all
}
