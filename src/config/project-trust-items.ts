import { createHash } from "node:crypto"
import { join } from "node:path"
import { collectTrustItems, type FoundItem, type TrustItem, trustKinds } from "../permission/trust.ts"
import { findPackageRoot, isPluginPath, providedPackages } from "../plugin/source.ts"
import { errorMessage } from "../util/errors.ts"
import { isFile } from "../util/file-system.ts"
import { type ConfigFile, configFiles, projectSkillFiles } from "./config-files.ts"
import {
  configDirectories,
  type Location,
  possibleConfigDirectories,
  projectDirectories,
} from "./location.ts"
import { markdownDefinition } from "./markdown-files.ts"
import { entryOf, toPlain } from "./node.ts"
import { treeOf } from "./parse.ts"
import { readSmallFile, type SmallFile } from "./small-file.ts"
import { type FileReader, type SubstitutionContext, substitute } from "./substitute.ts"

/**
 * Lists a project's items that must be trusted: config, tools, plugins, skills, agents, commands, and the installed
 * packages that its config lists as plugins. Includes the user's own tools if the worktree contains them. A config that
 * cannot be parsed has an empty hash and no packages. The problem is reported when the config is loaded. `wanted`
 * limits the kinds.
 */
export async function projectTrustItems(
  location: Location & { dataDirectory: string },
  wanted: readonly TrustItem["kind"][] = trustKinds,
): Promise<FoundItem[]> {
  const own = configFiles(location).filter(({ path, scope }) => scope === "project" && isFile(path))
  const holding = (kind: TrustItem["kind"]) =>
    own.filter(({ path }) => trustKind(path) === kind).map(({ path }) => path)
  const config: { path: string; hash: string }[] = []
  const packages: { name: string; root: string; provided: readonly string[] }[] = []
  const understood = wanted.includes("config") || wanted.includes("plugin")
  for (const path of understood ? holding("config") : []) {
    const file = readIfPossible(path)
    config.push({ path, hash: await hashConfig(path, file, location) })
    packages.push(...(await namedPackages({ path, scope: "project", text: file?.text ?? "" }, location)))
  }
  const below = (directories: readonly string[], names: readonly string[]) =>
    directories.flatMap((path) => names.map((name) => join(path, name)))
  const project = projectDirectories(location)
  const exposed = possibleConfigDirectories(location).flatMap((each) => (each.exposed ? [each.path] : []))
  const items = collectTrustItems(location.worktree, {
    config,
    agents: holding("agent"),
    commands: holding("command"),
    toolFolders: wanted.includes("tool") ? below([...exposed, ...project], ["tool", "tools"]) : [],
    pluginFolders: wanted.includes("plugin") ? below(project, ["plugin", "plugins"]) : [],
    packages,
    skillFiles: wanted.includes("skill") ? projectSkillFiles(location) : [],
  })
  return items.filter(({ kind }) => wanted.includes(kind))
}

/** Returns the kind of trust item for a config file. */
export function trustKind(path: string): TrustItem["kind"] {
  return markdownDefinition(path)?.holds ?? "config"
}

/** Returns a config file's hash, or, if the file cannot be read, an empty string, which is never trusted. */
async function hashConfig(path: string, file: SmallFile | undefined, location: Location): Promise<string> {
  return file === undefined ? "" : (await readTrustContent({ path, ...file }, location)).hash
}

function readIfPossible(path: string): SmallFile | undefined {
  try {
    return readSmallFile(path)
  } catch {
    // The problem is reported when the config is loaded.
    return undefined
  }
}

/**
 * The content that a user trusts together with a config: the bytes of the config and of every file that it includes.
 */
export interface TrustContent {
  /**
   * SHA-256 in hex. If the config includes no files, this is the hash of its bytes. Empty if the file cannot be parsed
   * or includes too many files, so that the config cannot be trusted.
   */
  hash: string
  /** Returns the included files with the content that was hashed. Does not read any other file. */
  read: FileReader
}

/** Maximum number of included files, so that a hostile config cannot delay startup. */
const maxFiles = 64

/**
 * Returns the content of a config, with one hash for the config and the files that it includes. Reads each included
 * file once. The hash also records which files are missing or unreadable, so the config is no longer trusted when one
 * of them can be read.
 */
export async function readTrustContent(
  { path, text, hash }: SmallFile & { path: string },
  around: SubstitutionContext,
): Promise<TrustContent> {
  const files = new Map<string, IncludedFile>()
  const collect: FileReader = (file) => {
    if (!files.has(file)) files.set(file, files.size < maxFiles ? includeFile(file) : tooMany)
    return { text: "", hash: "" }
  }
  const tree = await treeOf(path, text)
  if (tree) substitute(tree, { ...around, read: collect }, { warn: () => {}, fail: () => {} })
  return {
    hash: tree === undefined || [...files.values()].includes(tooMany) ? "" : hashOf(hash, files),
    read(file) {
      const found = files.get(file) ?? tooMany
      if ("reason" in found) throw found.cause
      return found.file
    },
  }
}

type IncludedFile = { file: SmallFile | undefined } | { reason: string; cause: unknown }

const tooMany: IncludedFile = {
  reason: "too many",
  cause: new RangeError(`the config includes more than ${maxFiles} files`),
}

function includeFile(path: string): IncludedFile {
  try {
    return { file: readSmallFile(path) }
  } catch (cause) {
    return { reason: errorMessage(cause), cause }
  }
}

function hashOf(own: string, files: ReadonlyMap<string, IncludedFile>): string {
  if (files.size === 0) return own
  const lines = [...files].map(([path, found]) =>
    JSON.stringify([path, "reason" in found ? found.reason : (found.file?.hash ?? null)]),
  )
  return createHash("sha256")
    .update([own, ...lines].join("\n"))
    .digest("hex")
}

/** A location with the data directory. */
type PluginLocation = Location & { dataDirectory: string }

/**
 * Lists the directories to search for a package that a config file lists: the user's directories and the directory
 * `plugin` in the data directory. If the file belongs to the project, the project's directories and the file's
 * directory follow.
 */
export function packageDirectories(
  location: PluginLocation,
  { path, scope }: Pick<ConfigFile, "path" | "scope">,
): string[] {
  const directories = configDirectories(location)
  const of = (wanted: typeof scope) =>
    directories.filter((each) => each.scope === wanted).map((each) => each.path)
  const user = [...of("user").reverse(), join(location.dataDirectory, "plugin")]
  return scope === "project" ? [...user, ...of("project").reverse(), join(path, "..")] : user
}

/**
 * Lists the installed packages that a project's config file lists as plugins. Ignores files that cannot be parsed, and
 * names with substitutions, which a user cannot review.
 */
async function namedPackages(
  file: Pick<ConfigFile, "path" | "scope"> & { text: string },
  location: PluginLocation,
): Promise<{ name: string; root: string; provided: readonly string[] }[]> {
  const tree = await treeOf(file.path, file.text)
  const value = entryOf(tree, "plugin")?.value
  const named = value === undefined ? [] : toPlain(value)
  const entries: unknown[] = Array.isArray(named) ? named : []
  const directories = packageDirectories(location, file)
  return entries.flatMap((entry) => {
    const spec: unknown = Array.isArray(entry) ? entry[0] : entry
    if (typeof spec !== "string" || isPluginPath(spec)) return []
    const found = findPackageRoot(spec, directories)
    return found ? { ...found, provided: providedPackages } : []
  })
}
