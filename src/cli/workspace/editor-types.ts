import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs"
import { createRequire } from "node:module"
import { dirname, join, resolve } from "node:path"
import { isInside } from "../../util/paths.ts"
import { writeNewFile } from "./new-file.ts"

/**
 * Gives the tool files in a config directory types in editors, without an installation: links `tackle`, `zod`,
 * `@opencode-ai/plugin` and `@types/node` in `node_modules`, and adds `tsconfig.json`, `package.json` and `.gitignore`
 * if they are missing. Keeps installed packages and existing files. Returns the paths of the added files. Throws
 * `UsageError` if a file cannot be written.
 */
export function addEditorTypes(directory: string): string[] {
  const modules = join(directory, "node_modules")
  for (const [name, target] of Object.entries(linkedPackages())) link(join(modules, name), target, directory)
  addPluginPackage(join(modules, "@opencode-ai/plugin"))
  const files: [name: string, content: string][] = [
    [".gitignore", "node_modules\n"],
    ["tsconfig.json", `${JSON.stringify(tsconfig, undefined, 2)}\n`],
  ]
  // Node's test runner prints a warning for ES modules without it. Scripts that exist could be CommonJS.
  if (!hasScripts(directory)) files.push(["package.json", '{ "private": true, "type": "module" }\n'])
  return files.flatMap(([name, content]) => {
    const path = join(directory, name)
    if (existsSync(path)) return []
    writeNewFile(path, content)
    return [path]
  })
}

const folders = ["tool", "tools", "plugin", "plugins"]

function hasScripts(directory: string): boolean {
  return folders
    .map((folder) => join(directory, folder))
    .some((path) => existsSync(path) && readdirSync(path).some((name) => name.endsWith(".js")))
}

const tsconfig = {
  compilerOptions: {
    target: "esnext",
    module: "esnext",
    moduleResolution: "bundler",
    allowImportingTsExtensions: true,
    allowJs: true,
    noEmit: true,
    skipLibCheck: true,
    strict: true,
    types: ["node"],
  },
  include: [...folders, "test"],
}

const require = createRequire(import.meta.url)

/** Returns the directories of the packages that tool files and their tests import, by name. */
function linkedPackages(): Record<string, string> {
  const names = ["tackle", "zod", "@types/node"]
  return Object.fromEntries(
    names.flatMap((name) => {
      try {
        return [[name, dirname(require.resolve(`${name}/package.json`))]]
      } catch {
        // Tackle was installed without this package.
        return []
      }
    }),
  )
}

/** Creates the link, or replaces a link that leads out of the directory. Keeps installed packages. */
function link(path: string, target: string, directory: string): void {
  const stats = lstatSync(path, { throwIfNoEntry: false })
  if (stats && !stats.isSymbolicLink()) return
  if (stats && isInside(resolve(dirname(path), readlinkSync(path)), directory)) return
  if (stats) rmSync(path)
  mkdirSync(dirname(path), { recursive: true })
  symlinkSync(target, path, "dir")
}

/** Adds a package whose modules have the types of `tackle/plugin`, which replaces OpenCode's package at run time. */
function addPluginPackage(directory: string): void {
  if (existsSync(directory)) return
  mkdirSync(directory, { recursive: true })
  const manifest = {
    name: "@opencode-ai/plugin",
    type: "module",
    exports: { ".": "./index.js", "./tool": "./index.js" },
  }
  writeFileSync(join(directory, "package.json"), JSON.stringify(manifest))
  for (const name of ["index.js", "index.d.ts"])
    writeFileSync(join(directory, name), 'export * from "tackle/plugin"\n')
}
