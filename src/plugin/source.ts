import { existsSync, readdirSync, readFileSync, statSync } from "node:fs"
import { isAbsolute, join, resolve } from "node:path"
import { fileURLToPath } from "node:url"
import { systemCode, UsageError } from "../util/errors.ts"
import { isRecord, parseJson } from "../util/json.ts"
import { isModuleFile } from "../util/load-module.ts"
import type { PinnedFiles, PinnedPackages } from "../util/pinned-files.ts"

/** Subdirectories of a config directory that contain plugins. */
export const pluginFolders = ["plugin", "plugins"] as const

/** A plugin to load. */
export interface PluginSource {
  /** Name for messages: a path or a package name. */
  name: string
  /** Absolute path of the module. */
  path: string
  /** The files that may run, with their hashes. See `ModuleGraph`. If undefined, any file may run. */
  pinned?: PinnedFiles
  /** True for an installed package. A package includes its dependencies, except OpenCode's plugin module. */
  package?: true
  /** Dependencies of the plugin, with the content that the user trusted. */
  pinnedPackages?: PinnedPackages
  /** Options from the config. */
  options?: Readonly<Record<string, unknown>>
}

/** Returns the plugin files in the config directories, in order. Ignores missing directories. */
export function findPluginFiles(configDirectories: readonly string[]): string[] {
  return configDirectories.flatMap((directory) =>
    pluginFolders.flatMap((folder) => modulesIn(join(directory, folder))),
  )
}

/** OpenCode's own packages, which Tackle provides. */
export const providedPackages = ["@opencode-ai/plugin"] as const

/** A plugin listed in a config file, such as `name`, `name@1.2.3`, `./path` or `file:…`. */
export interface NamedPlugin {
  spec: string
  options?: Readonly<Record<string, unknown>>
}

/** Returns true for a path, false for a package name. */
export function isPluginPath(spec: string): boolean {
  return /^(?:\.{1,2}\/|\/|~\/|file:)/.test(spec)
}

/** Resolves the path in `spec`. `directory` is the directory of the config file. */
export function pluginPath(spec: string, { directory, home }: { directory: string; home: string }): string {
  if (spec.startsWith("~/")) return join(home, spec.slice(2))
  if (!spec.startsWith("file:")) return resolve(directory, spec)
  return spec.startsWith("file://") ? fileURLToPath(spec) : resolve(directory, spec.slice("file:".length))
}

/**
 * Finds a package in the first directory whose `node_modules` contains it. Does not install packages. Throws
 * `UsageError` if the name is invalid, or if the package is missing or has no module to load. If the package is
 * missing, the message contains the command that installs the package.
 */
export function findPackage({ spec, options }: NamedPlugin, directories: readonly string[]): PluginSource {
  const found = findPackageRoot(spec, directories)
  const name = packageName(spec) ?? invalidName(spec)
  if (found) return { name, path: packageEntry(found.root, name), package: true, options }
  const [prefix = "."] = directories
  throw new UsageError(
    `the plugin ${name} is not installed. Install it with: npm install --ignore-scripts --prefix ${prefix} ${spec}`,
  )
}

/**
 * Returns the root directory of a package in the first directory whose `node_modules` contains it, or undefined if the
 * name is invalid or the package is missing.
 */
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

/** Returns the package name without a version or tag, or undefined if the name is invalid. */
function packageName(spec: string): string | undefined {
  return /^(?:npm:)?((?:@[a-z0-9][\w.~-]*\/)?[a-z0-9][\w.~-]*)(?:@[^/]*)?$/i.exec(spec)?.[1]
}

function invalidName(spec: string): never {
  throw new UsageError(
    `Invalid plugin "${spec}": expected a package name, a file: URL, or a path that starts with ./, ../, / or ~/.`,
  )
}

/**
 * Returns the path of the module that an import of the package loads. Prefers the package's `./server` entry, which
 * OpenCode defines for plugins without a terminal UI.
 */
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
  throw new UsageError(`the package ${name} in ${root} has no module to load.`)
}

/** Returns the file that an `exports` entry specifies. The entry can contain nested conditions. */
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
