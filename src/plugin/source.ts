import { existsSync, readdirSync, readFileSync, statSync } from "node:fs"
import { isAbsolute, join, resolve } from "node:path"
import { fileURLToPath } from "node:url"
import { systemCode, UsageError } from "../util/errors.ts"
import { isRecord, parseJson } from "../util/json.ts"
import { isModuleFile } from "../util/load-module.ts"
import type { PinnedFiles, PinnedPackages } from "../util/pinned-files.ts"

/** The folders of a config directory that hold plugins. */
export const pluginFolders = ["plugin", "plugins"] as const

/** A plugin that is to be loaded. */
export interface PluginSource {
  /** How it is named to people: a path, or the name of a package. */
  name: string
  /** The module. Absolute. */
  path: string
  /** All that may run of it: see `ModuleGraph`. Absent: it is run as it is. */
  pinned?: PinnedFiles
  /** Of an installed package: it brings along what it imports, but for OpenCode's own module. */
  package?: true
  /** The packages that it needs, as far as they are held to what they were. */
  held?: PinnedPackages
  /** What the config says to it. */
  options?: Readonly<Record<string, unknown>>
}

/** Paths of the plugin files below the config directories, in order; a directory that is not there has none. */
export function findPluginFiles(configDirectories: readonly string[]): string[] {
  return configDirectories.flatMap((directory) =>
    pluginFolders.flatMap((folder) => modulesIn(join(directory, folder))),
  )
}

/** Packages that stand for OpenCode's program itself: what a plugin imports of them is ours. */
export const providedPackages = ["@opencode-ai/plugin"] as const

/** A plugin as a config file names it: `name`, `name@1.2.3`, `./path`, `file:…`. */
export interface NamedPlugin {
  spec: string
  options?: Readonly<Record<string, unknown>>
}

/** True where the text is a path and not the name of a package. */
export function isPluginPath(spec: string): boolean {
  return /^(?:\.{1,2}\/|\/|~\/|file:)/.test(spec)
}

/** The absolute path that a plugin's `spec` stands for. `directory` is that of the config file. */
export function pluginPath(spec: string, { directory, home }: { directory: string; home: string }): string {
  if (spec.startsWith("~/")) return join(home, spec.slice(2))
  if (!spec.startsWith("file:")) return resolve(directory, spec)
  return spec.startsWith("file://") ? fileURLToPath(spec) : resolve(directory, spec.slice("file:".length))
}

/**
 * A plugin that is a package, in the first of the directories whose `node_modules` has it. Nothing is installed: throws
 * `UsageError`, which says how to, where none has it, and for a name that is none.
 */
export function findPackage({ spec, options }: NamedPlugin, directories: readonly string[]): PluginSource {
  const found = findPackageRoot(spec, directories)
  const name = packageName(spec) ?? notNamed(spec)
  if (found)
    return { name, path: packageEntry(found.root, name), package: true, ...(options ? { options } : {}) }
  const [place = "."] = directories
  throw new UsageError(
    `the plugin ${name} is not installed. Tackle installs none by itself: npm install --ignore-scripts --prefix ${place} ${spec}`,
  )
}

/** Where the package of that name lies, in the first of the directories whose `node_modules` has it. */
export function findPackageRoot(
  spec: string,
  directories: readonly string[],
): { name: string; root: string } | undefined {
  const name = packageName(spec)
  if (name === undefined) return undefined
  const roots = directories.map((directory) => join(directory, "node_modules", name))
  const root = roots.find((path) => existsSync(join(path, "package.json")))
  return root === undefined ? undefined : { name, root }
}

/** Without a version or tag. */
function packageName(spec: string): string | undefined {
  return /^(?:npm:)?((?:@[a-z0-9][\w.~-]*\/)?[a-z0-9][\w.~-]*)(?:@[^/]*)?$/i.exec(spec)?.[1]
}

function notNamed(spec: string): never {
  throw new UsageError(
    `"${spec}" names no plugin: it is neither the name of a package nor a path that begins with ./, ../, / or file:.`,
  )
}

/** What importing the package gives: OpenCode's `./server` entry first, which leaves out what draws on its terminal. */
function packageEntry(root: string, name: string): string {
  const parsed = parseJson(readFileSync(join(root, "package.json"), "utf8"))
  const manifest = parsed.ok && isRecord(parsed.value) ? parsed.value : {}
  const { exports, main, module } = manifest
  const entries = isRecord(exports) ? [exports["./server"], exports["."], exports] : [exports]
  const named = [...entries.map(importTarget), text(module), text(main), "index.js", "index.ts"]
  for (const entry of named) {
    const path = entry === undefined || isAbsolute(entry) ? undefined : join(root, entry)
    if (path !== undefined && statSync(path, { throwIfNoEntry: false })?.isFile()) return path
  }
  throw new UsageError(`the package ${name} in ${root} has no module that could be loaded.`)
}

/** The file of an entry of `exports`, which may be nested by condition. */
function importTarget(entry: unknown): string | undefined {
  if (!isRecord(entry)) return text(entry)
  for (const condition of ["import", "node", "default", "require"]) {
    const found = importTarget(entry[condition])
    if (found !== undefined) return found
  }
  return undefined
}

function text(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined
}

function modulesIn(directory: string): string[] {
  try {
    return readdirSync(directory)
      .sort()
      .map((name) => join(directory, name))
      .filter(isModuleFile)
  } catch (error) {
    if (systemCode(error) === "ENOENT" || systemCode(error) === "ENOTDIR") return []
    throw error
  }
}
