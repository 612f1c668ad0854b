import { execFile } from "node:child_process"
import { promisify } from "node:util"
import { afterEach, describe, expect, test } from "vitest"
import { type TemporaryProject, temporaryProject } from "../../src/testing/project.ts"
import { processScript } from "../process-scripts.ts"
import type { ToolFileReport } from "./call-tools.ts"

const projects: TemporaryProject[] = []

afterEach(async () => {
  for (const project of projects.splice(0)) await project.remove()
})

/**
 * Loads the tool files of a directory that has no `node_modules` of its own, and calls tools. In a process of its own:
 * the test runner replaces Node's way of loading modules, which is what is tested here.
 */
async function load(
  files: Record<string, string>,
  options: { calls?: Record<string, unknown>; override?: string[] } = {},
): Promise<ToolFileReport & { stderr: string }> {
  const project = await temporaryProject(files)
  projects.push(project)
  const script = processScript("test/registry/call-tools")
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [
    script,
    project.directory,
    JSON.stringify(options),
  ])
  return { ...(JSON.parse(stdout) as ToolFileReport), stderr }
}

const defined = (body: string) => `
import { Tool } from "tackle/tool"
import { z } from "zod"
${body}
`

test("names the default export after the file, appends the name of other exports, and runs TypeScript", async () => {
  const { problems, outputs } = await load(
    {
      ".tackle/tool/greet.ts": defined(`
        interface User { name: string }
        const hello = ({ name }: User): string => \`Hello \${name}\`
        export default Tool.define("greet", {
          description: "Says hello.",
          parameters: z.object({ name: z.string().default("you") }),
          async execute(args) { return { title: "greet", output: hello(args) } },
        })
        export const loudly = Tool.define("loud", {
          description: "Says hello loudly.",
          parameters: z.object({}),
          async execute() { return { title: "loud", output: "HELLO" } },
        })`),
      ".tackle/tools/plain.mjs": `
        import { z } from "zod"
        export default { description: "Adds.", args: { a: z.number(), b: z.number() }, execute: async ({ a, b }) => String(a + b) }`,
      ".tackle/tool/old.ts": defined(`
        enum Mood { Good = "good" }
        export default Tool.define("old", {
          description: "Uses an enum.",
          parameters: z.object({}),
          async execute() { return { title: "old", output: Mood.Good } },
        })`),
    },
    { calls: { greet: {}, greet_loudly: {}, plain: { a: 2, b: 3 }, old: {} } },
  )
  expect(problems).toEqual([])
  expect(outputs).toEqual({ greet: "Hello you", greet_loudly: "HELLO", plain: "5", old: "good" })
})

test("reports a broken file with its location and loads the others", async () => {
  const { problems, outputs } = await load(
    {
      ".tackle/tool/broken.js": "export default {\n  description: ,\n}\n",
      ".tackle/tool/empty.js": "export const nothing = 1\n",
      ".tackle/tool/throws.ts": 'const a: string = "b"\nthrow new Error("not today " + a)\n',
      ".tackle/tool/fine.js": `export default { description: "Fine.", args: {}, execute: async () => "fine" }`,
    },
    { calls: { fine: {} } },
  )
  expect(problems.map(({ file }) => file.split("/").at(-1))).toEqual(["broken.js", "empty.js", "throws.ts"])
  expect(problems[0]?.message).toMatch(/^[^/]*\(line 2\)$/)
  expect(problems[1]?.message).toMatch(/exports no tool/)
  expect(problems[2]?.message).toBe("not today b (line 2)")
  expect(outputs).toEqual({ fine: "fine" })
})

test("reports the location of an error in an imported file", async () => {
  const { problems } = await load(
    {
      ".tackle/tool/a (1).ts": 'import "./lib/b.mjs"\n',
      ".tackle/tool/lib/b.mjs": '\nthrow new Error("not today")\n',
    },
    { calls: {} },
  )
  expect(problems.map(({ message }) => message)).toEqual([
    expect.stringMatching(/^not today \(\/.*\/tool\/lib\/b\.mjs:2\)$/),
  ])
})

test("runs ES and CommonJS modules beside a package.json without type, without a warning", async () => {
  const { problems, outputs, stderr } = await load(
    {
      "package.json": '{"name": "plain"}',
      ".tackle/tool/es.js": `import { word } from "./lib/es.js"
        export default { description: "E.", args: {}, execute: async () => word }`,
      ".tackle/tool/lib/es.js": `import word from "./common.js"\nexport { word }`,
      ".tackle/tool/lib/common.js": 'module.exports = "common"',
      ".tackle/tool/common.js": `const word = require("./lib/common.js")
        module.exports = { description: "C.", args: {}, execute: async () => word }`,
      ".tackle/tool/wait.js": `export default { description: "W.", args: {}, execute: async () => "waited" }
        await null`,
      ".tackle/tool/types.ts": `export default { description: "T.", args: {}, execute: async (): Promise<string> => "types" }`,
    },
    { calls: { es: {}, common: {}, wait: {}, types: {} } },
  )
  expect(problems).toEqual([])
  expect(outputs).toEqual({ es: "common", common: "common", wait: "waited", types: "types" })
  expect(stderr).toBe("")
})

describe("a tool that cannot be offered does not affect others, and is reported on one line", () => {
  const plain = (args: string) =>
    `export default { description: "B.", args: ${args}, execute: async () => "" }`
  test.each([
    ["a schema that contains itself", `const a = {}; a.a = a; ${plain("{ a }")}`, /contain themselves/],
    ["args that contain themselves", `const a = {}; a.a = a; ${plain("a")}`, /contain themselves/],
    ["a schema with a bigint", plain("{ n: { maximum: 1n } }"), /BigInt/],
    ["a schema that throws", plain('{ n: { toJSON() { throw new Error("no\\njson") } } }'), /no json$/],
    [
      "a Zod schema without end",
      defined(`const node = () => z.object({ get child() { return node() } })
        export default Tool.define("bad", { description: "B.", parameters: node(), execute: async () => ({}) })`),
      /contain themselves/,
    ],
    [
      "parameters that are not an object",
      defined(
        `export default Tool.define("bad", { description: "B.", parameters: z.string(), execute: async () => ({}) })`,
      ),
      /do not describe an object/,
    ],
    ["an init that throws", defined(`export default Tool.define("bad", () => { throw null })`), /: null$/],
    [
      "a traceback",
      'throw new Error("first\\n  at thing\\n    at run (/x/y.js:1:1)\\nsecond")',
      /^first at thing second \(line 1\)$/,
    ],
  ])("%s", async (_, source, message) => {
    const fine = `export default { description: "F.", args: {}, execute: async () => "fine" }`
    const { problems, outputs } = await load(
      { ".tackle/tool/bad.mjs": source, ".tackle/tool/fine.mjs": fine },
      { calls: { fine: {} } },
    )
    expect(problems).toEqual([
      { file: expect.stringMatching(/bad\.mjs$/), message: expect.stringMatching(message) },
    ])
    expect(problems[0]?.message).not.toContain("\n")
    expect(outputs).toEqual({ fine: "fine" })
  })
})

test("offers a choice of objects as parameters", async () => {
  const { problems, outputs } = await load(
    {
      ".tackle/tool/pick.mjs": defined(`const parameters = z.discriminatedUnion("kind", [
          z.object({ kind: z.literal("a"), n: z.number() }),
          z.object({ kind: z.literal("b") }),
        ])
        export default Tool.define("pick", { description: "P.", parameters, execute: async ({ kind }) => ({ title: "", output: kind }) })`),
    },
    { calls: { pick: { kind: "b" } } },
  )
  expect({ problems, outputs }).toEqual({ problems: [], outputs: { pick: "b" } })
})

test("reports an invalid tool with what to write", async () => {
  const { problems, outputs } = await load(
    {
      ".tackle/tool/a.js": `export default { description: "A.", execute: async () => "a" }`,
      ".tackle/tool/b.ts": defined(
        `export default { description: "B.", args: z.object({ a: z.string() }), execute: async () => "b" }`,
      ),
      ".tackle/tool/c.js": `export default { description: "C.", parameters: {}, execute: async () => "c" }`,
      ".tackle/tool/d.js": `export default { args: {}, execute: async () => "d" }`,
      ".tackle/tool/e.js": `export default { description: "E.", args: {}, run: async () => "e" }`,
      ".tackle/tool/f.js": `
        export default { description: "F.", args: {}, execute: async () => "f" }
        export const half = { description: "Half.", execute: async () => "h" }
        export const limits = { description: "no tool at all", most: 3 }`,
    },
    { calls: { f: {} } },
  )
  const fields = "`args: { city: z.string() }`"
  expect(problems.map(({ message }) => message)).toEqual([
    `its default export is not a tool: it has no \`args\`: add ${fields}, or \`args: {}\` for a tool without arguments.`,
    `its default export is not a tool: its \`args\` is a schema instead of an object of fields: write ${fields}, without z.object(…).`,
    `its default export is not a tool: it has \`parameters\` instead of \`args\`: write ${fields}, or export \`Tool.define("name", { … })\` from "tackle/tool".`,
    "its default export is not a tool: it has no `description`: add a string that tells the model what the tool does.",
    "its default export is not a tool: it has no `execute`: add `async execute(args, ctx) { … }` that returns a string.",
    `its export half is not a tool: it has no \`args\`: add ${fields}, or \`args: {}\` for a tool without arguments.`,
  ])
  expect(outputs).toEqual({ f: "f" })
})

test("keeps the first of two tools with one name and reports both, unless the config overrides it", async () => {
  const files = {
    ".tackle/tool/read.js": `export default { description: "Mine.", args: {}, execute: async () => "mine" }`,
  }
  const kept = await load(files)
  expect(kept.problems[0]?.message).toMatch(/two tools named "read": one from builtin, one from .*read\.js/)
  expect(kept.sources.read).toBe("builtin")
  const replaced = await load(files, { override: ["read"], calls: { read: {} } })
  expect(replaced.problems).toEqual([])
  expect(replaced.outputs).toEqual({ read: "mine" })
})
