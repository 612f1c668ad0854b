import { readdirSync, readFileSync } from "node:fs"
import { mkdtemp, readFile, realpath, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { stampFile } from "../../src/files/file-tracker.ts"
import { fakeContext } from "../../src/testing/context.ts"
import { editTool } from "../../src/tools/edit/edit.ts"

/** An edit that a model requested, with either the resulting text of the file or the text of the refusal. */
interface EditCase {
  kind: string
  text: string
  oldString: string
  newString: string
  replaceAll?: boolean
  expect?: string
  strategy?: string
  /** A regular expression. */
  refused?: string
}

const corpus = new URL("../corpus/edit/", import.meta.url)
const groups = readdirSync(corpus).map((name) => ({
  name: name.replace(".jsonl", ""),
  cases: readFileSync(new URL(name, corpus), "utf8")
    .trimEnd()
    .split("\n")
    .map((line): EditCase => JSON.parse(line)),
}))

let directory: string

beforeAll(async () => {
  directory = await realpath(await mkdtemp(join(tmpdir(), "tackle-edit-corpus-")))
})

afterAll(() => rm(directory, { recursive: true, force: true }))

test("the corpus has sixty cases, each of a different kind", () => {
  const kinds = groups.flatMap(({ cases }) => cases.map(({ kind }) => kind))
  expect(kinds.length).toBeGreaterThanOrEqual(60)
  expect(new Set(kinds).size).toBe(kinds.length)
})

describe.each(groups)("$name", ({ name, cases }) => {
  test.each(cases)("$kind", async ({ text, expect: after, strategy, refused, ...args }) => {
    const path = join(directory, `${name}.txt`)
    const ctx = fakeContext({ directory })
    await writeFile(path, text)
    ctx.files.record(path, await stampFile(path))
    const tool = await editTool.init()
    const run = tool.execute(tool.parameters.parse({ filePath: path, ...args }), ctx)
    if (refused === undefined) {
      const { metadata, output } = await run
      expect(await readFile(path, "utf8")).toBe(after)
      expect(metadata?.strategy).toBe(strategy)
      if (strategy !== "exact") expect(output).toContain(`(strategy "${strategy}")`)
    } else {
      await expect(run).rejects.toMatchObject({ message: expect.stringMatching(new RegExp(refused, "s")) })
      expect(await readFile(path, "utf8")).toBe(text)
    }
  })
})
