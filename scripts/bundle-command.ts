import { readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { type OutputChunk, type Plugin, rolldown } from "rolldown"
import { parseAst } from "rolldown/parseAst"
import { inlineTexts } from "./inline-texts.ts"

export interface CommandBundle {
  /** Directory of the sources. */
  source: string
  /** Directory to write the bundle to. */
  directory: string
  version: string
}

/**
 * Bundles the command. Loading a file takes about a millisecond, so each group is one file: the help, the code that
 * every run needs, the YAML parser, and the other commands. All other modules have separate files that are loaded on
 * demand.
 */
export async function bundleCommand({ source, directory, version }: CommandBundle): Promise<void> {
  const command = await write({
    ...{ source, directory, version, chunks: true },
    input: { main: join(source, "cli/main.ts") },
  })
  // Each worker thread needs a file to start from. It loads no other file, because the chunks of the command contain much
  // more, and bundles that contain the library copy the file of `html-worker`.
  const threads = await Promise.all(
    Object.entries(workerThreads).map(([name, path]) =>
      write({ ...{ source, directory, version, chunks: false }, input: { [name]: join(source, path) } }),
    ),
  )
  for (const chunk of command) checkImports(chunk)
  const modules = [...command, ...threads.flat()].flatMap(({ moduleIds }) => moduleIds)
  writeFileSync(join(directory, "third-party-licenses.txt"), licensesOf(modules))
}

const workerThreads = {
  "html-worker": "tools/web/html-worker.ts",
  "watchdog-thread": "cli/process/watchdog-thread.ts",
}

/** Bundles the files, and returns the chunks that were written. */
async function write({
  input,
  source,
  directory,
  version,
  chunks,
}: {
  input: Record<string, string>
  source: string
  directory: string
  version: string
  /** Whether the bundle may have files that are loaded on demand. */
  chunks: boolean
}): Promise<OutputChunk[]> {
  const bundle = await rolldown({
    input,
    platform: "node",
    // The paths in `tsconfig.json` replace the types of packages.
    tsconfig: false,
    // ripgrep and jiti locate files relative to themselves. The user installs the others.
    external: ["@vscode/ripgrep", "jiti", "sharp", "pg", "pg-boss", "aws4fetch"],
    // Prefers modules to UMD, because a bundler cannot follow the `require` calls of UMD.
    resolve: { mainFields: ["module", "main"] },
    transform: {
      target: "node24",
      define: { "process.env.TACKLE_VERSION": JSON.stringify(version) },
      // For the provider packages. See model/http-fetch.ts for the reason.
      inject: chunks ? { Headers: [join(source, "model/http-fetch.ts"), "Headers"] } : {},
    },
    plugins: chunks ? commandPlugins : [asciiOnly],
    checks: { eval: false, ineffectiveDynamicImport: false, bundlerTimings: false },
  })
  const { output } = await bundle.write({
    dir: directory,
    // CommonJS starts faster than modules.
    format: "cjs",
    strict: true,
    entryFileNames: "[name].cjs",
    // The code cache loads files with this extension: see `cli/process/code-cache.ts`.
    chunkFileNames: "[name]-[hash].chunk.cjs",
    codeSplitting: chunks && { groups },
    // Keeps names readable in stack traces.
    minify: { compress: true, mangle: false, codegen: { removeWhitespace: true } },
    comments: { legal: false },
  })
  await bundle.close()
  return output.filter((file) => file.type === "chunk")
}

/** Returns the license texts of the packages that contain the modules. */
function licensesOf(modules: readonly string[]): string {
  const directories = new Set(
    modules.flatMap((id) => /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(id)?.[0] ?? []),
  )
  const sections = [...directories].map((directory) => {
    const { name, version, license } = JSON.parse(readFileSync(join(directory, "package.json"), "utf8"))
    const file = readdirSync(directory).find((entry) => /^licen[cs]e/i.test(entry))
    const text = file === undefined ? "" : `\n\n${readFileSync(join(directory, file), "utf8").trim()}`
    return `${name} ${version} (${license})${text}`
  })
  return `${sections.sort().join(`\n\n${"-".repeat(80)}\n\n`)}\n`
}

/** Groups that may load only the runtime and the given groups, because the user waits for them. */
const quickGroups: Readonly<Record<string, readonly string[]>> = { help: [], terminal: ["help"] }

/** Throws if a quick group loads another group. */
function checkImports({ name, imports }: { name: string; imports: readonly string[] }): void {
  const allowed = quickGroups[name]?.concat("rolldown-runtime")
  const other = imports.find(
    (file) => file.endsWith(".chunk.cjs") && !allowed?.some((each) => file.startsWith(`${each}-`)),
  )
  if (!allowed || other === undefined) return
  throw new Error(
    `The group "${name}" loads ${other}. Move the module that it needs to a group that it may load.`,
  )
}

/** Each group contains the matching modules and their static imports, except modules in an earlier group. */
const groups = [
  { name: "help", test: /src\/cli\/(program|commands\/flags|process\/stdout)\.ts$/, priority: 4 },
  {
    name: "start",
    test: /src\/(cli\/commands\/run|config\/layer|model\/http-fetch|store\/sqlite)\.ts$|@ai-sdk\/openai-compatible\//,
    priority: 3,
  },
  {
    name: "terminal",
    test: /src\/cli\/commands\/interactive\.ts$|src\/tui\/start-screen\.ts$/,
    priority: 3.5,
  },
  { name: "markdown", test: /src\/(config\/markdown|util\/front-matter)\.ts$/, priority: 2 },
  { name: "commands", test: /src\/cli\/commands\//, priority: 1 },
]

const textsInline: Plugin = {
  name: "inline-texts",
  transform: (code, id) => (id.endsWith(".ts") ? inlineTexts(code, id) : undefined),
}

/** zod includes its messages in every language; Tackle uses English only. */
const leaveOutLocales: Plugin = {
  name: "leave-out-locales",
  load: (id) =>
    /zod\/v4\/locales\/index\.js$/.test(id) ? 'export { default as en } from "./en.js"' : undefined,
}

const zodTypeOnly = "\0zod-type-only"

/**
 * Replaces zod in `@hono/zod-openapi` with the only class of zod that this package uses. The package exports the whole
 * zod namespace, so every command would otherwise load 90 KB more.
 */
const onlyZodType: Plugin = {
  name: "only-zod-type",
  resolveId: (id, importer) =>
    id === "zod" && importer?.includes("/@hono/zod-openapi/") ? zodTypeOnly : undefined,
  load: (id) =>
    id === zodTypeOnly ? 'import { ZodType } from "zod"; export const z = { ZodType }' : undefined,
}

/**
 * Delays the creation of pi-tui's emoji pattern until its first use, because creating it at startup takes a fifth of
 * the terminal's startup time.
 */
const lateEmojiPattern: Plugin = {
  name: "late-emoji-pattern",
  transform(code, id) {
    if (!/pi-tui\/dist\/utils\.js$/.test(id)) return undefined
    const pattern = "/^\\p{RGI_Emoji}$/v"
    const changed = code.replace(
      `const rgiEmojiRegex = ${pattern};`,
      `let emojiPattern; const rgiEmojiRegex = { test: (text) => (emojiPattern ??= ${pattern}).test(text) };`,
    )
    if (changed === code) throw new Error("pi-tui no longer contains the emoji pattern. Remove this plugin.")
    return changed
  },
}

/**
 * Moves `import()` to a separate file, which Node loads itself, because `import()` would fail in the files that
 * `code-cache.ts` loads.
 */
const nativeImports: Plugin = {
  name: "native-imports",
  generateBundle(_options, bundle) {
    const fileName = "import.cjs"
    this.emitFile({
      type: "asset",
      fileName,
      source: "module.exports = (name, options) => import(name, options)\n",
    })
    for (const file of Object.values(bundle)) {
      if (file.type !== "chunk") continue
      for (const start of importsIn(parseAst(file.code)).toSorted((a, b) => b - a))
        file.code = `${file.code.slice(0, start)}require("./${fileName}")${file.code.slice(start + "import".length)}`
    }
  },
}

/** Returns the offsets of all `import()` expressions in a syntax tree. */
function importsIn(node: unknown): number[] {
  if (typeof node !== "object" || node === null) return []
  const inner = Object.values(node).flatMap(importsIn)
  if (!("type" in node) || node.type !== "ImportExpression" || !("start" in node)) return inner
  return [Number(node.start), ...inner]
}

/** Modules of Node that take up to five milliseconds to load, and that Node does not load when a program starts. */
const slowBuiltins = [
  "child_process",
  "crypto",
  "dgram",
  "fs/promises",
  "http",
  "net",
  "perf_hooks",
  "readline",
  "stream",
  "stream/consumers",
  "stream/promises",
  "timers/promises",
  "tls",
  "worker_threads",
  "zlib",
]

/** Loads slow modules of Node on their first use, because short commands use few of them. */
const lateBuiltins: Plugin = {
  name: "late-builtins",
  generateBundle(_options, bundle) {
    let isChanged = false
    for (const file of Object.values(bundle)) {
      if (file.type !== "chunk" || !file.fileName.endsWith(".chunk.cjs")) continue
      const code = slowBuiltins.reduce(withLateBuiltin, file.code)
      isChanged ||= code !== file.code
      file.code = code
    }
    if (!isChanged)
      throw new Error("The bundler writes `require` in another form. Adapt the function withLateBuiltin.")
  },
}

/**
 * Replaces the variable of a module with a function that loads the module. Leaves the variable as it is if the code uses
 * more than members of the module. For a default import, the bundler also assigns a copy to the variable.
 */
function withLateBuiltin(code: string, name: string): string {
  const variable = `node_${name.replace("/", "_")}`
  const required = `${variable}=require("node:${name}")`
  const copied = `${variable}=require_rolldown_runtime.r(${variable},1)`
  const others = code.replace(required, "").replace(copied, "")
  const otherUse = new RegExp(`\\b${variable}\\b(?!\\.(?!default\\b)|\\.default\\.)`)
  if (!code.includes(required) || otherUse.test(others)) return code
  const loaded = `let loaded;return()=>loaded??=process.getBuiltinModule("node:${name}")`
  return (
    code
      .replace(copied, "0")
      .replace(required, `${variable}=(()=>{${loaded}})()`)
      // The parentheses are for `new`, as in `new (node_net().Socket)()`.
      .replaceAll(new RegExp(`\\b${variable}\\.(?:default\\.)?([\\w$]+)`, "g"), `(${variable}().$1)`)
  )
}

/**
 * Escapes all characters outside ASCII. V8 stores source text that contains a single character beyond Latin-1 with two
 * bytes for each character, which would cost every process 1.5 MB.
 */
const asciiOnly: Plugin = {
  name: "ascii-only",
  generateBundle(_options, bundle) {
    for (const file of Object.values(bundle)) {
      if (file.type !== "chunk") continue
      const escaped = /(?<!\\)(?:\\\\)*\\[^\0-\x7f]/.exec(file.code)
      if (escaped)
        throw new Error(
          `${file.fileName} has a backslash before a character that is not ASCII: ${escaped[0]}`,
        )
      file.code = file.code.replace(
        /[^\0-\x7f]/g,
        (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
      )
    }
  },
}

const commandPlugins: Plugin[] = [
  textsInline,
  leaveOutLocales,
  onlyZodType,
  lateEmojiPattern,
  nativeImports,
  lateBuiltins,
  asciiOnly,
]
