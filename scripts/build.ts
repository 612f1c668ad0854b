/**
 * Builds what is published: `dist/cli`, the command as one bundle with lazy chunks, and `dist/lib`, the library as
 * plain modules with types. Runs in a few seconds; `npm ci` calls it. The old build stays until the new one is whole,
 * so that a command started meanwhile, and one started after a build that failed, finds it. In the end the command is
 * run a few times, so that the first person who runs it finds it warm.
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
import { bundleCommand } from "./bundle-command.ts"
import { warmCommand } from "./warm-command.ts"

const root = resolve(import.meta.dirname, "..")
const source = join(root, "src")
const output = join(root, "dist")
const require = createRequire(import.meta.url)

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
try {
  await warmCommand(root)
} catch (error) {
  // It is built all the same, and starts a little slower the first times.
  process.stderr.write(`The command could not be run to warm it: ${String(error)}\n`)
}

async function buildCommand(directory: string): Promise<void> {
  await bundleCommand({ source, directory, version: version() })
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
