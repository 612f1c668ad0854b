import { execFile } from "node:child_process"
import { join } from "node:path"
import { promisify } from "node:util"
import { expect, test } from "vitest"
import { findPackage } from "../../src/plugin/source.ts"
import { temporaryProject } from "../../src/testing/project.ts"
import { processScript } from "../process-scripts.ts"
import type { PluginJob, PluginReport } from "./call-tools.ts"

/** Loads plugin files in a separate process, since vitest resolves imports itself. */
async function load(
  files: Record<string, string>,
  { others = {}, ...job }: PluginJob & { others?: Record<string, string> } = {},
): Promise<PluginReport> {
  const project = await temporaryProject({
    ...others,
    ...Object.fromEntries(Object.entries(files).map(([name, text]) => [`.tackle/plugin/${name}`, text])),
  })
  const script = processScript("test/plugin/call-tools")
  const { stdout } = await promisify(execFile)(process.execPath, [
    script,
    project.directory,
    JSON.stringify(job),
  ])
  await project.remove()
  return JSON.parse(stdout) as PluginReport
}

const greet = `
import { type Plugin, tool } from "@opencode-ai/plugin"
export const Greet: Plugin = async ({ directory, $ }, options) => ({
  tool: {
    greet: tool({
      description: "Says hello",
      args: { name: tool.schema.string().describe("Who") },
      async execute({ name }, ctx) { return "Hello " + name + " " + (ctx.directory === directory) },
    }),
    echo: {
      description: "Echoes",
      args: { text: { type: "string" } },
      async execute({ text }) { return { title: "echo", output: (await $\`printf '%s ' \${text}\`.text()) + String(options?.mark) } },
    },
  },
})
`

test("runs the tools of a TypeScript plugin without node_modules", async () => {
  const { problems, outputs, sources, parameters } = await load(
    { "greet.ts": greet },
    {
      calls: [
        ["greet", { name: "Ada" }],
        ["greet", { name: 1 }],
        ["echo", { text: "a'b $HOME; rm" }],
      ],
    },
  )
  expect(problems).toEqual({})
  expect(outputs).toEqual([
    "Hello Ada true",
    expect.stringContaining("name: expected string"),
    "a'b $HOME; rm undefined",
  ])
  expect(sources.greet).toMatch(/^plugin .*greet\.ts$/)
  expect(parameters.echo).toMatchObject({ properties: { text: { type: "string" } } })
})

test("loads a TypeScript package with its own modules and the options of the config", async () => {
  const own = "home/node_modules/greeter/node_modules/@opencode-ai/plugin"
  const { problems, outputs } = await load(
    {},
    {
      others: {
        "home/node_modules/greeter/package.json":
          '{ "name": "greeter", "type": "module", "main": "src/plugin.ts" }',
        "home/node_modules/greeter/src/plugin.ts": `
          import { tool } from "@opencode-ai/plugin"
          import { word } from "./words"
          import { end } from "ending"
          export default { id: "greeter", server: async (input, options) => ({
            tool: { hail: tool({ description: "Hails", args: {}, execute: async () => word + options.mark + end }) },
          }) }`,
        "home/node_modules/greeter/src/words/index.ts": 'export const word: string = "Hail"',
        [`${own}/package.json`]: '{ "name": "@opencode-ai/plugin", "main": "i.js" }',
        [`${own}/i.js`]: 'throw new Error("not this one")',
        "home/node_modules/ending/package.json": '{ "name": "ending", "main": "i.js" }',
        "home/node_modules/ending/i.js": 'exports.end = "."',
      },
      packages: [{ spec: "greeter@1.0.0", options: { mark: "!" } }],
      calls: [["hail", {}]],
    },
  )
  expect(problems).toEqual({})
  expect(outputs).toEqual(["Hail!."])
})

/** Installed packages that a plugin imports: one only for `import`, one in TypeScript that needs a transform. */
const dependencies = {
  "home/node_modules/modern/package.json":
    '{ "name": "modern", "exports": { ".": { "import": "./m.mjs" } } }',
  "home/node_modules/modern/m.mjs": 'export const modern = "modern"\nexport default "default"',
  "home/node_modules/between/package.json": '{ "name": "between", "type": "module", "main": "b.js" }',
  "home/node_modules/between/b.js": 'export { made } from "typed"',
  "home/node_modules/typed/package.json":
    '{ "name": "typed", "type": "module", "exports": "./src/index.ts" }',
  "home/node_modules/typed/src/index.ts": `
    import { Mood } from "./mood"
    import { Unused } from "./types.ts"
    export * from "./more.ts"
    export class Typed { constructor(private readonly mood: Mood) {} show(): string { return this.mood } }
    export const made = new Typed(Mood.Good)
    export default function say(unused?: Unused) { return "said" }`,
  "home/node_modules/typed/src/mood.ts": 'export enum Mood { Good = "good" }',
  "home/node_modules/typed/src/types.ts": "export interface Unused { a: string }",
  "home/node_modules/typed/src/more.ts": 'import { modern } from "modern"\nexport const more = () => modern',
}

const imports = [
  'import other, { modern } from "modern"',
  'import { made } from "between"',
  'import say, { more } from "typed"',
]

test.each([
  ["JavaScript", "index.mjs", "", imports.join("\n")],
  ["JavaScript, in another order", "index.mjs", "", imports.toReversed().join("\n")],
  ["TypeScript", "index.ts", "const kind: string = 'x'", imports.join("\n")],
  ["TypeScript that needs a transform", "index.ts", "enum Kind { One }", imports.join("\n")],
])("loads the dependencies of a plugin in %s as it imports them", async (_, main, code, imports) => {
  const { problems, outputs } = await load(
    {},
    {
      others: {
        ...dependencies,
        "home/node_modules/plug/package.json": JSON.stringify({ name: "plug", type: "module", main }),
        [`home/node_modules/plug/${main}`]: `
          import { tool } from "@opencode-ai/plugin"
          ${imports}
          ${code}
          export const Plug = async () => ({
            tool: { all: tool({ description: "All", args: {}, async execute() {
              return [other, modern, say(), made.show(), more()].join(" ")
            } }) },
          })`,
      },
      packages: [{ spec: "plug" }],
      calls: [["all", {}]],
    },
  )
  expect(problems).toEqual({})
  expect(outputs).toEqual(["default modern said good modern"])
})

test("rejects a missing package and an invalid name with a hint", async () => {
  const project = await temporaryProject()
  const find = (spec: string) => () => findPackage({ spec }, [project.directory])
  expect(find("@a/b@^1.2.0")).toThrow(
    `npm install --ignore-scripts --prefix ${project.directory} @a/b@^1.2.0`,
  )
  expect(find("../up")).toThrow("Invalid plugin")
  expect(find("a/../../b")).toThrow("Invalid plugin")
  await project.remove()
})

test("reports broken plugins without affecting the others", async () => {
  const { problems, outputs } = await load(
    {
      "a-throws.ts": 'export const A = async () => { throw new Error("no key") }',
      "b-syntax.ts": "export const = 1",
      "c-none.ts": "export const answer = 42",
      "d-hangs.ts": "export default () => new Promise(() => {})",
      "e-odd.ts": 'export default async () => ({ "tool.execute.before": 1 })',
      "f-tool.ts": "export default async () => ({ tool: { broken: 1, 'bad id': {} } })",
      "g-unused.ts": "export default async () => ({ provider: {}, 'command.execute.before': () => {} })",
      "z-greet.ts": greet,
    },
    { calls: [["greet", { name: "Ada" }]] },
  )
  expect(problems).toEqual({
    "a-throws.ts": expect.stringContaining("no key"),
    "b-syntax.ts": expect.stringContaining("could not be loaded"),
    "c-none.ts": expect.stringContaining("exports no plugin"),
    "d-hangs.ts": expect.stringContaining("did not load within 1000 ms"),
    "e-odd.ts": expect.stringContaining('"tool.execute.before" must be a function'),
    "f-tool.ts": expect.stringMatching(/"broken" was not loaded.*"bad id" was not loaded/),
    "g-unused.ts": "Tackle does not support these plugin hooks: provider, command.execute.before.",
  })
  expect(outputs).toEqual(["Hello Ada true"])
})

test("uses the default export, else every exported function", async () => {
  const made = (id: string) =>
    `async () => ({ tool: { ${id}: { description: "x", args: {}, execute: async () => "${id}" } } })`
  const { problems, sources } = await load({
    "one.ts": `export const helper = ${made("helper")}\nexport default ${made("main")}`,
    "two.ts": `export const A = ${made("first")}\nexport const B = ${made("second")}\nexport const C = B`,
  })
  expect(problems).toEqual({})
  expect(Object.keys(sources)).toEqual(expect.arrayContaining(["main", "first", "second"]))
  expect(sources).not.toHaveProperty("helper")
})

test("loads no plugin code if there are no plugins", async () => {
  const root = join(import.meta.dirname, "../..")
  const script = `
    import { registerHooks } from "node:module"
    const seen = []
    registerHooks({ resolve: (name, context, next) => { const found = next(name, context); seen.push(found.url); return found } })
    const { createTackle } = await import(${JSON.stringify(join(root, "src/engine/create-tackle.ts"))})
    const { createMemoryStore } = await import(${JSON.stringify(join(root, "src/store/memory.ts"))})
    const tackle = await createTackle({ directory: ".", dataDirectory: "./none", store: createMemoryStore() })
    await tackle.close()
    console.log(JSON.stringify(seen.filter((url) => url.includes("/src/plugin/") || url.includes("engine/plugins"))), seen.length > 100)`
  const project = await temporaryProject()
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", script], {
    cwd: project.directory,
  })
  await project.remove()
  expect(stdout).toBe("[] true\n")
})
