import { createHash } from "node:crypto"
import { readlinkSync } from "node:fs"
import { basename, dirname, join, relative, sep } from "node:path"
import { directoryEntries, isFile } from "../util/file-system.ts"
import { realPath } from "../util/paths.ts"
import { hashFile } from "./hash-file.ts"
import { hashDependencies, type PackageDependencies } from "./package-dependencies.ts"

/** What a project may bring that has to be trusted. */
export const trustKinds = ["config", "tool", "plugin", "skill", "agent", "command"] as const

/** One thing a project brings that can change what Tackle does. */
export interface TrustItem {
  kind: (typeof trustKinds)[number]
  /** Relative to the work tree's root, with `/`. */
  path: string
  /** sha256 in hex. Empty where the content could not be read: such an item is never trusted. */
  hash: string
}

/** An item as it was found. */
export interface FoundItem extends TrustItem {
  /** Absolute. */
  file: string
  /** sha256 of each file that the hash covers, by its real path: what may run when the item is trusted. */
  contents: ReadonlyMap<string, string>
  /** Of a package: the packages that it needs. Their modules are covered by the hash too. */
  dependencies?: PackageDependencies
}

/** What {@link collectTrustItems} looks at. Paths absolute, below the work tree. */
export interface TrustPlaces {
  /** With the hash of each, which also covers what it puts in: that takes a parser, and the caller has one. */
  config: readonly { path: string; hash: string }[]
  toolFolders: readonly string[]
  pluginFolders?: readonly string[]
  /** Packages that are named as plugins, by the directory of each. `provided`: see {@link hashDependencies}. */
  packages?: readonly { name: string; root: string; provided?: readonly string[] }[]
  /** Paths of `SKILL.md` files. */
  skillFiles?: readonly string[]
  /** Markdown files. */
  agents?: readonly string[]
  commands?: readonly string[]
}

/**
 * Lists the config files, what exists of the files in the folders of tools and plugins, the skills, and the agents and
 * commands in Markdown, sorted by path.
 *
 * The hash of a tool or plugin also covers everything in the subdirectories of its folder, from where it may import. The
 * other files of the folder have hashes of their own; `node_modules` has none. A skill's hash covers its whole directory,
 * and so does a package's, with the modules of the packages that it needs.
 */
export function collectTrustItems(worktree: string, places: TrustPlaces): FoundItem[] {
  const item = (kind: TrustItem["kind"], file: string, hash: string, contents: Contents): FoundItem => ({
    kind,
    path: trustPath(worktree, file),
    hash,
    file,
    contents: new Map(contents),
  })
  const alone = (kind: TrustItem["kind"], paths: readonly string[] = []) =>
    paths.filter(isFile).map((path) => item(kind, path, hashFile(path), []))
  const texts = [
    ...places.config.map(({ path, hash }) => item("config", path, hash, [])),
    ...alone("agent", places.agents),
    ...alone("command", places.commands),
  ]
  const codeIn = (kind: "tool" | "plugin", folder: string) => {
    const entries = directoryEntries(folder)
    const helpers = entries.filter((entry) => entry.isDirectory()).map((entry) => join(folder, entry.name))
    const files = entries.map((entry) => join(folder, entry.name)).filter(isFile)
    const shared = helpers.flatMap((helper) => hashTree(helper, worktree))
    const beside = shared.flatMap(({ content }) => (content ? [content] : []))
    return files.map((path) => {
      const own = hashFile(path)
      const lines = shared.map(({ line }) => line)
      return item(kind, path, hashAll(own, lines), own === "" ? [] : [[realPath(path), own], ...beside])
    })
  }
  const tools = places.toolFolders.flatMap((folder) => codeIn("tool", folder))
  const plugins = (places.pluginFolders ?? []).flatMap((folder) => codeIn("plugin", folder))
  const packages = (places.packages ?? []).map(({ name, root, provided }) => {
    const tree = hashTree(root, root)
    const dependencies = hashDependencies(root, provided)
    const lines = [...tree.map(({ line }) => line), ...dependencies.lines]
    const contents = tree.flatMap(({ content }) => (content ? [content] : []))
    const hash = tree.length === 0 ? "" : hashLines(lines)
    return { ...item("plugin", root, hash, contents), path: packageItem(name), dependencies }
  })
  const skills = (places.skillFiles ?? []).map((path) => {
    const tree = hashTree(dirname(path), worktree)
    const beside = tree.flatMap(({ content }) => (content ? [content] : []))
    // Of `SKILL.md` by itself too: it may be a link.
    const own = hashFile(path)
    const lines = tree.map(({ line }) => line)
    return item("skill", path, hashAll(own, lines), own === "" ? [] : [...beside, [realPath(path), own]])
  })
  return [...texts, ...tools, ...plugins, ...byPath(packages), ...skills].sort((a, b) =>
    a.path < b.path ? -1 : 1,
  )
}

/** How a package is named in a {@link TrustItem}. */
export function packageItem(name: string): string {
  return `npm:${name}`
}

/** Of what several config files name, one. */
function byPath(items: readonly FoundItem[]): FoundItem[] {
  return [...new Map(items.map((each) => [each.path, each])).values()]
}

/** How a file of the work tree is named in a {@link TrustItem}. */
export function trustPath(worktree: string, path: string): string {
  return relative(worktree, path).split(sep).join("/")
}

/** Empty where one of them is. */
function hashAll(own: string, shared: readonly string[]): string {
  if (shared.length === 0 || own === "") return own
  return hashLines([own, ...shared])
}

/** Empty where one of them is, and where there is none. */
function hashLines(lines: readonly string[]): string {
  if (lines.length === 0 || lines.includes("")) return ""
  return createHash("sha256").update(lines.join("\n")).digest("hex")
}

type Contents = readonly (readonly [path: string, hash: string])[]

interface TreeEntry {
  /** Its path and hash for the hash of the whole. Empty: it has none. */
  line: string
  content?: Contents[number]
}

/** Each file below. Links are not followed: it is where they lead that counts, and what lies there is not covered. */
function hashTree(directory: string, worktree: string): TreeEntry[] {
  if (basename(directory) === "node_modules") return []
  return directoryEntries(directory).flatMap((entry) => {
    const path = join(directory, entry.name)
    if (entry.isDirectory()) return hashTree(path, worktree)
    const line = (hash: string) => JSON.stringify([trustPath(worktree, path), hash])
    if (entry.isSymbolicLink()) return [{ line: line(`link ${readlinkSync(path)}`) }]
    const hash = hashFile(path)
    return [hash === "" ? { line: "" } : { line: line(hash), content: [realPath(path), hash] }]
  })
}
