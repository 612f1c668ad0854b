import { join } from "node:path"
import { type Plugin, type PluginContext, rolldown } from "rolldown"

/** What the bundle of the command is made of. */
export interface CommandBundle {
  /** The folder of the sources. */
  source: string
  /** Where the bundle goes. */
  directory: string
  version: string
}

/**
 * Bundles the command. To load a file takes about a millisecond, so what every run needs is one file, what the help
 * needs another, and what the other commands need a third; everything else is loaded when it is called for.
 */
export async function bundleCommand({ source, directory, version }: CommandBundle): Promise<void> {
  const chunks = createChunks(source, [
    { name: "help", roots: ["./cli/program.ts"] },
    { name: "start", roots: loadedByEveryRun },
    // With the YAML parser, which is an eighth of all.
    { name: "markdown", roots: ["./config/markdown.ts", "./util/front-matter.ts"] },
    { name: "commands", roots: ["./cli/commands/index.ts"] },
  ])
  const bundle = await rolldown({
    input: {
      main: join(source, "cli/main.ts"),
      // Threads begin with a file of their own.
      "html-worker": join(source, "builtin/web/html-worker.ts"),
    },
    platform: "node",
    // Both look for files beside themselves.
    external: ["@vscode/ripgrep", "jiti", "sharp"],
    // Modules before UMD, whose own `require` calls a bundler cannot follow.
    resolve: { mainFields: ["module", "main"] },
    transform: {
      target: "node24",
      define: { "process.env.TACKLE_VERSION": JSON.stringify(version) },
      // For the provider packages; the file says why.
      inject: { Headers: [join(source, "model/headers.ts"), "Headers"] },
    },
    plugins: [leaveOutLocales, leaveOutChildren, builtins, chunks.plugin, plainAscii, importOther],
    checks: { eval: false, ineffectiveDynamicImport: false },
  })
  await bundle.write({
    dir: directory,
    // Such as V8 can keep compiled: see bin/load.cjs.
    format: "cjs",
    strict: true,
    entryFileNames: "[name].cjs",
    chunkFileNames: "[name]-[hash].cjs",
    codeSplitting: { groups: chunks.groups },
    // Names stay: errors and stack traces are read by people, and keeping them by wrapping costs time at every closure.
    minify: { compress: true, mangle: false, codegen: { removeWhitespace: true } },
    comments: { legal: false },
  })
  await bundle.close()
}

/** Modules that a run imports while it goes on, whatever it does. What they import statically comes with them. */
const loadedByEveryRun = [
  "./cli/commands/run.ts",
  "./cli/stdout.ts",
  "./config/layer.ts",
  "./model/http-fetch.ts",
  "./store/sqlite.ts",
  "@ai-sdk/openai-compatible",
]

/**
 * Groups that each become one file: a group's roots, named as a module in `source` would, with all they import
 * statically, but for what an earlier one has.
 */
function createChunks(source: string, groups: readonly { name: string; roots: readonly string[] }[]) {
  const groupOf = new Map<string, string>()
  function collect(context: PluginContext, id: string, group: string): void {
    if (groupOf.has(id)) return
    const module = context.getModuleInfo(id)
    if (!module) throw new Error(`${id} is to be in the file "${group}", and nothing imports it.`)
    groupOf.set(id, group)
    for (const next of module.importedIds) collect(context, next, group)
  }
  const plugin: Plugin = {
    name: "chunks",
    async buildEnd(error) {
      if (error) return
      for (const { name, roots } of groups)
        for (const root of roots) {
          const found = await this.resolve(root, join(source, "index.ts"))
          collect(this, found?.id ?? root, name)
        }
    },
  }
  return {
    plugin,
    groups: groups.map(({ name }) => ({ name, test: (id: string) => groupOf.get(id) === name })),
  }
}

/**
 * Writes every sign beyond ASCII as an escape. One of them makes V8 hold the whole file in two bytes a sign, and to
 * decode, hash and scan it takes twice the time: some milliseconds of every start.
 */
const plainAscii: Plugin = {
  name: "plain-ascii",
  generateBundle(_, files) {
    for (const file of Object.values(files)) if (file.type === "chunk") file.code = escapeSigns(file.code)
  },
}

/** Calls what `bin/load.cjs` hands in for `import`, where it imports what is not in the bundle. */
const importOther: Plugin = {
  name: "import-other",
  generateBundle(_, files) {
    for (const file of Object.values(files)) {
      if (file.type !== "chunk" || !file.code.includes("import(")) continue
      if (file.name === "html-worker")
        throw new Error(`${file.fileName} is loaded by Node, without importOther`)
      for (const start of importCalls(this.parse(file.code)).toSorted((a, b) => b - a))
        file.code = `${file.code.slice(0, start)}importOther${file.code.slice(start + "import".length)}`
    }
  },
}

/** Where calls of `import` begin, anywhere below a node. */
function importCalls(node: object): number[] {
  const below = Object.values(node).filter((value) => typeof value === "object" && value !== null)
  const own =
    "type" in node && node.type === "ImportExpression" && "start" in node ? [Number(node.start)] : []
  return [...own, ...below.flatMap(importCalls)]
}

function escapeSigns(code: string): string {
  // A backslash before such a sign means nothing, and would take the meaning from ours.
  return code.replace(/(\\*)([^\0-\x7f])/g, (_, slashes: string, sign: string) => {
    const kept = slashes.length % 2 === 0 ? slashes : slashes.slice(1)
    return `${kept}\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`
  })
}

/** The provider packages pull in every language of zod's messages; ours are English. */
const leaveOutLocales: Plugin = {
  name: "leave-out-locales",
  load: (id) =>
    /zod\/v4\/locales\/index\.js$/.test(id) ? 'export { default as en } from "./en.js"' : undefined,
}

/** commander can start other programs as subcommands. Ours are functions, so the start need not load what that takes. */
const leaveOutChildren: Plugin = {
  name: "leave-out-children",
  resolveId: (id, importer) =>
    id === "node:child_process" && importer?.includes("/commander/") ? leftOut : undefined,
  load: (id) => (id === leftOut ? "export default {}" : undefined),
}

const leftOut = "\0left-out"

/**
 * Node's own modules by the names that are used, and no others. An `import` of one first makes a copy of all its
 * exports, which loads what hangs on them (`node:fs` its streams): a third of the start of a command without need.
 */
const builtins: Plugin = {
  name: "builtins",
  resolveId(id, importer, { kind }) {
    if (!id.startsWith("node:")) return undefined
    // A lazy import takes all there is of a module, and would make the others take it too.
    if (kind === "dynamic-import") return { id, external: true }
    // What the bundler adds comes before every module, and so before ours.
    if (importer?.startsWith("\0rolldown")) return { id, external: true }
    // One module for each package that imports it: what one of them uses the others need not load.
    const user = /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(importer ?? "")?.[1] ?? "tackle"
    return { id: `${builtin}${id}?${user}`, moduleSideEffects: false }
  },
  load(id) {
    if (!id.startsWith(builtin)) return undefined
    const path = id.slice(builtin.length, id.indexOf("?"))
    const names = Object.keys(process.getBuiltinModule(path) ?? {}).filter(
      (name) => /^[A-Za-z]\w*$/.test(name) && name !== "default",
    )
    return loadedByFirstCall.has(path) ? forwarders(path, names) : members(path, names)
  },
}

const builtin = "\0builtin:"

function members(path: string, names: readonly string[]): string {
  const member = (name: string) => `export const ${name} = /* @__PURE__ */ (() => builtin.${name})()`
  return [
    `const builtin = process.getBuiltinModule("${path}")`,
    "export default builtin",
    ...names.map(member),
  ].join("\n")
}

/** Modules that take long to load, of which only functions are used and none of them at the start of a run. */
const loadedByFirstCall: ReadonlySet<string> = new Set(["node:crypto"])

function forwarders(path: string, names: readonly string[]): string {
  const forward = (name: string) => `export const ${name} = (...args) => builtin().${name}(...args)`
  return [`const builtin = () => process.getBuiltinModule("${path}")`, ...names.map(forward)].join("\n")
}
