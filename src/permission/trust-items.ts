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

/** One part of a project that can change what Tackle does. */
export interface TrustItem {
  kind: (typeof trustKinds)[number]
  /** Path relative to the root of the worktree, with `/`. */
  path: string
  /** sha256 in hex. Empty if the content cannot be read: the item is then never trusted. */
  hash: string
}

/** An item that exists in the project. */
export interface FoundItem extends TrustItem {
  /** Absolute path. */
  file: string
  /** sha256 of each file that the hash covers, by its real path: the files that can run once the item is trusted. */
  contents: ReadonlyMap<string, string>
  /** For a package: its dependencies. The hash covers their modules too. */
  dependencies?: PackageDependencies
}

/** The locations that {@link collectTrustItems} searches. Paths are absolute, inside the worktree. */
export interface TrustSources {
  /** Config files. The caller computes the hash, which also covers included files: that takes a parser. */
  config: readonly { path: string; hash: string }[]
  toolFolders: readonly string[]
  pluginFolders?: readonly string[]
  /** Packages that are named as plugins, with their directories. For `provided` see {@link hashDependencies}. */
  packages?: readonly { name: string; root: string; provided?: readonly string[] }[]
  /** Paths of `SKILL.md` files. */
  skillFiles?: readonly string[]
  /** Markdown files. */
  agents?: readonly string[]
  commands?: readonly string[]
}

/**
 * Lists the trust items of a project, sorted by path. Files that do not exist are left out.
 *
 * The hash of a tool or plugin file also covers the subdirectories of its folder, from which it can import. The other
 * files of the folder have their own hashes. The hash of a skill covers its directory. The hash of a package covers its
 * directory and the modules of its dependencies. `node_modules` inside these directories is left out.
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
  /** An item for a file whose hash also covers the files of a tree. */
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
    // A link to `SKILL.md` is not part of the tree, so its target has its own hash.
    ...(sources.skillFiles ?? []).map((path) => withTree("skill", path, hashTree([dirname(path)], worktree))),
  ].sort((a, b) => (a.path < b.path ? -1 : 1))
}

/** Returns the path of a package in a {@link TrustItem}. */
export function packageItem(name: string): string {
  return `npm:${name}`
}

/** Returns the path of a worktree file in a {@link TrustItem}. */
export function trustPath(worktree: string, path: string): string {
  return relative(worktree, path).split(sep).join("/")
}
