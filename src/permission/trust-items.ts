import { dirname, join, relative, sep } from "node:path"
import { directoryEntries, isFile } from "../util/file-system.ts"
import { realPath } from "../util/paths.ts"
import {
  type FileHash,
  hashDependencies,
  hashFile,
  hashLines,
  hashTree,
  type PackageDependencies,
  type TreeHash,
} from "./trust-hash.ts"

/** The kinds of project files that must be trusted. */
export const trustKinds = ["config", "tool", "plugin", "skill", "agent", "command"] as const

/** A file or package of a project that can change what Tackle does. */
export interface TrustItem {
  kind: (typeof trustKinds)[number]
  /** Path relative to the root of the worktree, separated by `/`. For a package, `npm:` and its name. */
  path: string
  /** SHA-256 in hex. Empty if the content cannot be read. The item is then never trusted. */
  hash: string
}

/** An item that exists in the project. */
export interface FoundItem extends TrustItem {
  /** Absolute path of the file, or of the directory of a package. */
  file: string
  /** SHA-256 in hex of each file that the hash covers, by real path. These files can run once the item is trusted. */
  contents: ReadonlyMap<string, string>
  /** The dependencies of a package. The hash also covers their modules. */
  dependencies?: PackageDependencies
}

/** The locations that {@link collectTrustItems} searches. Paths are absolute and inside the worktree. */
export interface TrustSources {
  /**
   * Config files. The hash also covers included files. The caller computes it, because finding the included files
   * requires a parser.
   */
  config: readonly { path: string; hash: string }[]
  toolFolders: readonly string[]
  pluginFolders?: readonly string[]
  /**
   * Packages that the config names as plugins, with their directories. For `provided`, see {@link hashDependencies}.
   */
  packages?: readonly { name: string; root: string; provided?: readonly string[] }[]
  /** Paths of `SKILL.md` files. */
  skillFiles?: readonly string[]
  /** Paths of the Markdown files that define agents. */
  agents?: readonly string[]
  commands?: readonly string[]
}

/**
 * Lists the trust items of a project, sorted by path. Omits files that do not exist.
 *
 * The hash of a tool or plugin file also covers the subdirectories of its folder, because the file can import from
 * them. Each file directly in the folder has its own hash. The hash of a skill covers its directory. The hash of a
 * package covers its directory and the modules of its dependencies. Directories named `node_modules` are excluded.
 */
export function collectTrustItems(worktree: string, sources: TrustSources): FoundItem[] {
  const item = (
    kind: TrustItem["kind"],
    file: string,
    hash: string,
    contents: readonly FileHash[],
  ): FoundItem => ({ kind, path: trustPath(worktree, file), hash, file, contents: new Map(contents) })
  const single = (kind: TrustItem["kind"], paths: readonly string[] = []) =>
    paths.filter(isFile).map((path) => item(kind, path, hashFile(path), []))
  /** Creates an item for a file whose hash also covers a directory tree. */
  const withTree = (kind: TrustItem["kind"], path: string, { lines, contents }: TreeHash) => {
    const own = hashFile(path)
    const hash = own === "" || lines.length === 0 ? own : hashLines([own, ...lines])
    return item(kind, path, hash, own === "" ? [] : [[realPath(path), own], ...contents])
  }
  const codeIn = (kind: "tool" | "plugin", folder: string) => {
    const entries = directoryEntries(folder)
    const directories = entries.filter((entry) => entry.isDirectory())
    const tree = hashTree(
      directories.map(({ name }) => join(folder, name)),
      worktree,
    )
    const files = entries.map((entry) => join(folder, entry.name)).filter(isFile)
    return files.map((path) => withTree(kind, path, tree))
  }
  const packages = (sources.packages ?? []).map(({ name, root, provided }): [string, FoundItem] => {
    const { lines, contents } = hashTree([root], root)
    const dependencies = hashDependencies(root, provided)
    const hash = lines.length === 0 ? "" : hashLines([...lines, ...dependencies.lines])
    const path = packageItem(name)
    return [path, { ...item("plugin", root, hash, contents), path, dependencies }]
  })
  return [
    ...sources.config.map(({ path, hash }) => item("config", path, hash, [])),
    ...single("agent", sources.agents),
    ...single("command", sources.commands),
    ...sources.toolFolders.flatMap((folder) => codeIn("tool", folder)),
    ...(sources.pluginFolders ?? []).flatMap((folder) => codeIn("plugin", folder)),
    // Several config files can name the same package.
    ...new Map(packages).values(),
    // `hashTree` does not hash the target of a link, so `withTree` hashes `SKILL.md` itself.
    ...(sources.skillFiles ?? []).map((path) => withTree("skill", path, hashTree([dirname(path)], worktree))),
  ].sort((a, b) => (a.path < b.path ? -1 : 1))
}

/** Returns the `path` of a {@link TrustItem} for a package. */
export function packageItem(name: string): string {
  return `npm:${name}`
}

/** Returns the `path` of a {@link TrustItem} for a file in the worktree. */
export function trustPath(worktree: string, path: string): string {
  return relative(worktree, path).split(sep).join("/")
}
