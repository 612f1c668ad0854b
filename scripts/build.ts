/**
 * Builds what is published: `dist/cli`, the command as one bundle with lazy chunks, and `dist/lib`, the library as
 * plain modules with types. Runs in about a second; `npm ci` calls it. The old build stays until the new one is whole,
 * so that a command started meanwhile, and one started after a build that failed, finds it.
 */
import { execFileSync } from "node:child_process"
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
} from "node:fs"
import { createRequire } from "node:module"
import { basename, dirname, join, relative, resolve } from "node:path"
import { build, type Plugin } from "esbuild"

const root = resolve(import.meta.dirname, "..")
const source = join(root, "src")
const output = join(root, "dist")
const require = createRequire(import.meta.url)

/** The provider packages pull in every language of zod's messages; ours are English. */
const leaveOutLocales: Plugin = {
  name: "leave-out-locales",
  setup(context) {
    context.onLoad({ filter: /zod\/v4\/locales\/index\.js$/ }, () => ({
      contents: 'export { default as en } from "./en.js"',
    }))
  },
}

/** commander can start other programs as subcommands. Ours are functions, so the start need not load what that takes. */
const leaveOutChildren: Plugin = {
  name: "leave-out-children",
  setup(context) {
    context.onResolve({ filter: /^node:child_process$/ }, ({ importer }) =>
      importer.includes("/commander/") ? { path: "children", namespace: "left-out" } : undefined,
    )
    context.onLoad({ filter: /.*/, namespace: "left-out" }, () => ({ contents: "export default {}" }))
  },
}

/**
 * Node's own modules by the names that are used, and no others. An `import` of one first makes a copy of all its
 * exports, which loads what hangs on them (`node:fs` its streams): a third of the start of a command without need.
 */
const builtins: Plugin = {
  name: "builtins",
  setup(context) {
    context.onResolve({ filter: /^node:/ }, ({ path, importer, kind }) => {
      // A lazy import takes all there is of a module, and would make the others take it too.
      if (kind === "dynamic-import") return { path, external: true }
      // One module for each package that imports it: what one of them uses the others need not load.
      const user = /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(importer)?.[1] ?? "tackle"
      return { path, namespace: "builtin", suffix: `?${user}` }
    })
    context.onLoad({ filter: /.*/, namespace: "builtin" }, ({ path }) => {
      const names = Object.keys(process.getBuiltinModule(path) ?? {}).filter(
        (name) => /^[A-Za-z]\w*$/.test(name) && name !== "default",
      )
      if (loadedByFirstCall.has(path)) return { contents: forwarders(path, names) }
      const exported = names.map((name) => `export const ${name} = /* @__PURE__ */ (() => builtin.${name})()`)
      return {
        contents: [
          `const builtin = process.getBuiltinModule("${path}")`,
          "export default builtin",
          ...exported,
        ].join("\n"),
      }
    })
  },
}

/** Modules that take long to load, of which only functions are used and none of them at the start of a run. */
const loadedByFirstCall: ReadonlySet<string> = new Set(["node:crypto"])

function forwarders(path: string, names: readonly string[]): string {
  const forward = (name: string) => `export const ${name} = (...args) => builtin().${name}(...args)`
  return [`const builtin = () => process.getBuiltinModule("${path}")`, ...names.map(forward)].join("\n")
}

const workshop = mkdtempSync(join(root, ".dist-"))
try {
  const fresh = join(workshop, "new")
  await buildCommand(join(fresh, "cli"))
  buildLibrary(join(fresh, "lib"))
  if (existsSync(output)) renameSync(output, join(workshop, "old"))
  renameSync(fresh, output)
} finally {
  rmSync(workshop, { recursive: true, force: true, maxRetries: 3 })
}

async function buildCommand(directory: string): Promise<void> {
  await build({
    entryPoints: {
      main: join(source, "cli/main.ts"),
      // Threads begin with a file of their own.
      "html-worker": join(source, "builtin/web/html-worker.ts"),
    },
    outdir: directory,
    bundle: true,
    splitting: true,
    format: "esm",
    platform: "node",
    target: "node24",
    // Modules before UMD, whose own `require` calls a bundler cannot follow.
    mainFields: ["module", "main"],
    // Names stay: errors and stack traces are read by people, and keeping them by wrapping costs time at every closure.
    minifyWhitespace: true,
    minifySyntax: true,
    legalComments: "none",
    define: { "process.env.TACKLE_VERSION": JSON.stringify(version()) },
    // Both look for files beside themselves.
    external: ["@vscode/ripgrep", "jiti"],
    // By its full name: a library may have a function named process at the top of the same file.
    banner: {
      js: 'const require = globalThis.process.getBuiltinModule("node:module").createRequire(import.meta.url);',
    },
    // For the provider packages; the file says why.
    inject: [join(source, "model/headers.ts")],
    plugins: [leaveOutLocales, leaveOutChildren, builtins],
    logLevel: "warning",
  })
  copyTexts(directory, (file) => basename(file))
  for (const grammar of ["tree-sitter-bash/tree-sitter-bash.wasm", "web-tree-sitter/web-tree-sitter.wasm"]) {
    copyFileSync(require.resolve(grammar), join(directory, basename(grammar)))
  }
}

/** Modules one by one, so that a user's bundler can leave out what it does not need. */
function buildLibrary(directory: string): void {
  const tsc = join(root, "node_modules/typescript/bin/tsc")
  execFileSync(process.execPath, [tsc, "-p", join(root, "tsconfig.build.json"), "--outDir", directory], {
    stdio: "inherit",
  })
  copyTexts(directory, (file) => relative(source, file))
}

/** Texts lie beside the code that reads them: flat in the bundle, where every module is one folder. */
function copyTexts(directory: string, place: (file: string) => string): void {
  const taken = new Map<string, string>()
  for (const entry of readdirSync(source, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile() || !entry.name.endsWith(".md")) continue
    const file = join(entry.parentPath, entry.name)
    const target = join(directory, place(file))
    const other = taken.get(target)
    if (other) throw new Error(`${file} and ${other} would be one file in the bundle: rename one of them.`)
    taken.set(target, file)
    mkdirSync(dirname(target), { recursive: true })
    cpSync(file, target)
  }
}

function version(): string {
  const manifest: unknown = JSON.parse(readFileSync(join(root, "package.json"), "utf8"))
  if (typeof manifest === "object" && manifest !== null && "version" in manifest)
    return String(manifest.version)
  throw new Error("package.json names no version")
}
