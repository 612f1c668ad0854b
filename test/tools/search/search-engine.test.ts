import { chmod } from "node:fs/promises"
import { afterEach, beforeEach, expect, test } from "vitest"
import { type TemporaryProject, temporaryProject } from "../../../src/testing/project.ts"
import { withFallback } from "../../../src/tools/search/default-search-engine.ts"
import { createFallbackEngine } from "../../../src/tools/search/fallback-engine.ts"
import { createRipgrepEngine } from "../../../src/tools/search/ripgrep-engine.ts"
import {
  EngineUnavailableError,
  type SearchEngine,
  SearchFailedError,
  type TextQuery,
} from "../../../src/tools/search/search-engine.ts"
import { collected, searchEngineSuite } from "../../suites/search-engine.ts"

searchEngineSuite("ripgrep", createRipgrepEngine())
searchEngineSuite("fallback", createFallbackEngine())

let project: TemporaryProject

beforeEach(async () => {
  project = await temporaryProject({ "a.txt": "needle\n" })
})
afterEach(() => project.remove())

function query(pattern = "needle"): TextQuery {
  return {
    root: { path: project.directory, kind: "directory" },
    accepts: (path) => path === "a.txt",
    signal: new AbortController().signal,
    onUnreadable: () => {},
    pattern,
    maxLines: 100,
    maxCount: 10_000,
    maxLineLength: 2000,
  }
}

/** Creates a program that replaces ripgrep. */
async function program(script: string): Promise<SearchEngine> {
  await project.write("bin/rg", `#!/bin/sh\n${script}\n`)
  await chmod(project.path("bin/rg"), 0o755)
  return createRipgrepEngine(async () => project.path("bin/rg"))
}

const missing: Record<string, () => Promise<string>> = {
  "no package for this platform": () => Promise.reject(new Error("Could not find the package.")),
  "no binary": async () => project.path("missing/rg"),
  "a binary that may not be run": async () => project.path("a.txt"),
}

test.each(Object.keys(missing))("%s: uses the fallback", async (name) => {
  const engine = createRipgrepEngine(missing[name])
  await expect(collected(engine.files(query()))).rejects.toBeInstanceOf(EngineUnavailableError)

  const both = withFallback(engine, createFallbackEngine())
  expect(await collected(both.files(query()))).toEqual([project.path("a.txt")])
  expect(await collected(both.search(query()))).toMatchObject([{ path: project.path("a.txt"), count: 1 }])
})

test("uses the fallback for a pattern that is too long for a command line", async () => {
  const both = withFallback(createRipgrepEngine(), createFallbackEngine())
  const long = `needle[${"x".repeat(200_000)}]?`
  expect(await collected(both.search(query(long)))).toMatchObject([{ count: 1 }])
})

test("does not hide other failures", async () => {
  const engine = withFallback(await program("echo out of memory >&2; kill -9 $$"), createFallbackEngine())
  const error = await collected(engine.files(query())).catch((thrown: unknown) => thrown)
  expect(error).toBeInstanceOf(SearchFailedError)
  expect(String(error)).toContain("SIGKILL")
})

test("reports unreadable files and continues", async () => {
  let told = 0
  const engine = await program("printf './a.txt\\0'; exit 2")
  const found = engine.files({ ...query(), onUnreadable: () => (told += 1) })
  expect(await collected(found)).toEqual([project.path("a.txt")])
  expect(told).toBe(1)
})

test("kills the program at an abort", async () => {
  const engine = await program(`echo $$ > ${project.path("pid")}; printf './a.txt\\0'; exec sleep 60`)
  const controller = new AbortController()
  const found = engine.files({ ...query(), signal: controller.signal })[Symbol.asyncIterator]()
  expect((await found.next()).value).toBe(project.path("a.txt"))
  controller.abort()
  await expect(found.next()).rejects.toMatchObject({ code: "aborted" })
  const pid = Number(await project.read("pid"))
  expect(() => process.kill(pid, 0)).toThrow("ESRCH")
})

test("kills the program when the loop ends early", async () => {
  const engine = await program(`echo $$ > ${project.path("pid")}; printf './a.txt\\0'; exec sleep 60`)
  for await (const _ of engine.files(query())) break
  const pid = Number(await project.read("pid"))
  expect(() => process.kill(pid, 0)).toThrow("ESRCH")
})

test("passes no environment to the program", async () => {
  const engine = await program(`env > ${project.path("env")}`)
  await collected(engine.files(query()))
  expect(await project.read("env")).not.toContain("HOME=")
})

test("the fallback stops a runaway expression", async () => {
  await project.write("a.txt", `${"a".repeat(60)}b\n`)
  const error = await collected(createFallbackEngine().search(query("(a+)+$"))).catch((e: unknown) => e)
  expect(error).toMatchObject({ code: "search.slow-pattern" })
})
