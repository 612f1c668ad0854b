import { execFile } from "node:child_process"
import { promisify } from "node:util"
import { afterEach, expect, test } from "vitest"
import { type TemporaryProject, temporaryProject } from "../../src/testing/project.ts"
import { processScript } from "../process-scripts.ts"
import type { Step } from "./change-tools.ts"

const projects: TemporaryProject[] = []

afterEach(async () => {
  for (const project of projects.splice(0)) await project.remove()
})

/** Runs in a separate process: the test runner replaces Node's module loader, which is tested here. */
async function follow(files: Record<string, string>, steps: readonly Step[]): Promise<unknown[]> {
  const project = await temporaryProject(files)
  projects.push(project)
  const script = processScript("test/registry/change-tools")
  const { stdout } = await promisify(execFile)(process.execPath, [
    script,
    project.directory,
    JSON.stringify(steps),
  ])
  return JSON.parse(stdout) as unknown[]
}

const says = (output: string, head = "") =>
  `${head}\nexport default { description: "Says something.", args: {}, execute: async () => ${output} }\n`

const program = (name: string, output: string) => `#!/bin/sh
[ "$1" = --describe ] && echo '{"name":"${name}","description":"${output}","parameters":{"type":"object"}}' && exit
read -r call
id=$(printf '%s' "$call" | sed 's/^{"type":"call","id":"\\([A-Za-z0-9_]*\\)".*/\\1/')
printf '{"type":"result","id":"%s","output":"%s"}\\n' "$id" "${output}"
`

test("applies changed, added, renamed and removed files immediately", async () => {
  expect(
    await follow({ ".tackle/tool/a.ts": says('"one" as string') }, [
      { call: "a" },
      { write: ".tackle/tool/a.ts", text: says('"two" as string') },
      { call: "a" },
      { write: ".tackle/tools/b.mjs", text: says('"b"') },
      { call: "b" },
      { ids: true },
      { remove: ".tackle/tool/a.ts" },
      { ids: true },
      { problems: true },
    ]),
  ).toEqual(["one", "two", "b", ["a", "b"], ["b"], []])
})

test("loads tools from a directory that is created later", async () => {
  expect(await follow({}, [{ write: ".tackle/tool/a.js", text: says('"a"') }, { call: "a" }])).toEqual(["a"])
})

test("reports a broken edit with file and line, keeps the other tools, and loads the repaired file", async () => {
  expect(
    await follow({ ".tackle/tool/a.ts": says('"a"'), ".tackle/tool/b.ts": says('"b"') }, [
      { write: ".tackle/tool/a.ts", text: "export default {\n  description: ,\n}\n" },
      { call: "b" },
      { ids: true },
      { problems: true },
      { write: ".tackle/tool/a.ts", text: 'const a = 1\nthrow new Error("not today")\n' },
      { ids: true },
      { problems: true },
      { write: ".tackle/tool/a.ts", text: says('"repaired"') },
      { call: "a" },
      { ids: true },
      { problems: true },
    ]),
  ).toEqual([
    "b",
    ["b"],
    [expect.stringMatching(/^\/\.tackle\/tool\/a\.ts: [^/]*\(line 2\)$/s)],
    ["b"],
    ["/.tackle/tool/a.ts: not today (line 2)"],
    "repaired",
    ["a", "b"],
    [],
  ])
})

test("reloads a tool if a module, CommonJS or JSON file that it imports changes, also a later import", async () => {
  const imports = [
    'import part from "./lib/part.ts"',
    'import old from "./lib/old.cjs"',
    'import data from "./lib/data.json" with { type: "json" }',
  ].join("\n")
  const output = '[part(), old.text(), data.text, (await import("./lib/late.ts")).default].join(" ")'
  const part = (text: string) => `export default (): string => "${text}"\n`
  expect(
    await follow(
      {
        ".tackle/tool/a.ts": says(output, imports),
        ".tackle/tool/lib/part.ts": part("part1"),
        ".tackle/tool/lib/old.cjs": 'module.exports = require("./older.cjs")\n',
        ".tackle/tool/lib/older.cjs": 'exports.text = () => "old1"\n',
        ".tackle/tool/lib/data.json": '{ "text": "data1" }',
        ".tackle/tool/lib/late.ts": 'export default "late1"\n',
      },
      [
        { call: "a" },
        { write: ".tackle/tool/lib/part.ts", text: part("part2") },
        { call: "a" },
        { write: ".tackle/tool/lib/older.cjs", text: 'exports.text = () => "old2"\n' },
        { call: "a" },
        { write: ".tackle/tool/lib/data.json", text: '{ "text": "data2" }' },
        { call: "a" },
        { write: ".tackle/tool/lib/late.ts", text: 'export default "late2"\n' },
        { call: "a" },
      ],
    ),
  ).toEqual([
    "part1 old1 data1 late1",
    "part2 old1 data1 late1",
    "part2 old2 data1 late1",
    "part2 old2 data2 late1",
    "part2 old2 data2 late2",
  ])
})

test("reloads transformed TypeScript and CommonJS files with their imports", async () => {
  const part = (text: string) => `export enum Part { Name = "${text}" }\n`
  expect(
    await follow(
      {
        ".tackle/tool/typed.ts": says(
          "Part.Name + Own.A",
          'import { Part } from "./lib/part.ts"\nenum Own { A = "!" }',
        ),
        ".tackle/tool/lib/part.ts": part("one"),
        ".tackle/tool/common.js":
          'const { text } = require("./lib/text.cjs")\nmodule.exports = { description: "d", args: {}, execute: async () => text }\n',
        ".tackle/tool/lib/text.cjs": 'exports.text = "one"\n',
      },
      [
        { call: "typed" },
        { call: "common" },
        { write: ".tackle/tool/lib/part.ts", text: part("two") },
        { write: ".tackle/tool/lib/text.cjs", text: 'exports.text = "two"\n' },
        { call: "typed" },
        { call: "common" },
        { problems: true },
      ],
    ),
  ).toEqual(["one!", "one", "two!", "two", []])
})

test("reports a missing import with its file and line, and loads the tool once the file exists", async () => {
  const a = says("text", 'import { z } from "zod"\nimport text from "./lib/text.ts"')
  expect(
    await follow({}, [
      { write: ".tackle/tool/a.ts", text: a },
      { write: ".tackle/tool/b.ts", text: says("1", '\nimport missing from "not-installed-anywhere"') },
      { ids: true },
      { problems: true },
      { write: ".tackle/tool/lib/text.ts", text: 'export default "there"\n' },
      { call: "a" },
    ]),
  ).toEqual([
    [],
    [
      '/.tackle/tool/a.ts: it imports "./lib/text.ts" (line 2), but that file does not exist.',
      '/.tackle/tool/b.ts: it imports "not-installed-anywhere" (line 2), but that package is not installed: run `npm install` in the file\'s directory.',
    ],
    "there",
  ])
})

test("keeps the state of an unchanged tool", async () => {
  const counts = says("String((count += 1))", "let count = 0")
  expect(
    await follow({ ".tackle/tool/counts.ts": counts, ".tackle/tool/other.ts": says('"1"') }, [
      { call: "counts" },
      { write: ".tackle/tool/other.ts", text: says('"2"') },
      { call: "other" },
      { call: "counts" },
      { write: ".tackle/tool/counts.ts", text: `${counts}\n` },
      { call: "counts" },
    ]),
  ).toEqual(["1", "2", "2", "1"])
})

test("describes a changed program again, and loads one that becomes executable", async () => {
  expect(
    await follow({}, [
      { write: ".tackle/tool/p.sh", text: program("p", "one") },
      { ids: true },
      { write: ".tackle/tool/p.sh", text: program("p", "one"), executable: true },
      { call: "p" },
      { write: ".tackle/tool/p.sh", text: program("p", "two"), executable: true },
      { call: "p" },
      { write: ".tackle/tool/p.sh", text: program("other", "three"), executable: true },
      { ids: true },
      { problems: true },
    ]),
  ).toEqual([[], "one", "two", [], [expect.stringContaining('printed the name "other"')]])
})

test("keeps the first of two files with one name and reports the second", async () => {
  expect(
    await follow({ ".tackle/tool/a.ts": says('"first"') }, [
      { write: ".tackle/tools/a.ts", text: says('"second"') },
      { call: "a" },
      { problems: true },
    ]),
  ).toEqual(["first", [expect.stringContaining('there are two tools named "a"')]])
})
