import { createHash } from "node:crypto"
import { type Dirent, readdirSync, readFileSync, readlinkSync, statSync } from "node:fs"
import { basename, dirname, join, relative, sep } from "node:path"

/** One thing a project brings that can change what Tackle does. */
export interface TrustItem {
  kind: "config" | "tool" | "skill"
  /** Relative to the work tree's root, with `/`. */
  path: string
  /** sha256 in hex. Empty where the content could not be read: such an item is never trusted. */
  hash: string
}

/** Files above this are not hashed, so that a hostile project cannot hold up the start. In bytes. */
const maxBytes = 64 * 1024 * 1024

/**
 * Lists what exists of the config files, of the files in the tool folders and of the skills (paths of their `SKILL.md`),
 * sorted by path. Paths absolute, below the work tree.
 *
 * A tool's hash also covers everything in the subdirectories of its folder, from where it may import; only
 * `node_modules` and what lies outside the folder are beyond it, as are the other tools, which have hashes of their own.
 * A skill's hash covers its whole directory.
 */
export function collectTrustItems(
  worktree: string,
  places: { config: readonly string[]; toolFolders: readonly string[]; skillFiles?: readonly string[] },
): TrustItem[] {
  const item = (kind: TrustItem["kind"], path: string, hash: string): TrustItem => ({
    kind,
    path: trustPath(worktree, path),
    hash,
  })
  const config = places.config.filter(isFile).map((path) => item("config", path, hashFile(path)))
  const tools = places.toolFolders.flatMap((folder) => {
    const entries = list(folder)
    const helpers = entries.filter((entry) => entry.isDirectory()).map((entry) => join(folder, entry.name))
    const files = entries.map((entry) => join(folder, entry.name)).filter(isFile)
    const shared = helpers.flatMap((helper) => hashTree(helper, worktree))
    return files.map((path) => item("tool", path, toolHash(path, shared)))
  })
  const skills = (places.skillFiles ?? []).map((path) => item("skill", path, skillHash(path, worktree)))
  return [...config, ...tools, ...skills].sort((a, b) => (a.path < b.path ? -1 : 1))
}

/** How a file of the work tree is named in a {@link TrustItem}. */
export function trustPath(worktree: string, path: string): string {
  return relative(worktree, path).split(sep).join("/")
}

function toolHash(path: string, shared: readonly string[]): string {
  const own = hashFile(path)
  return shared.length === 0 ? own : hashAll([own, ...shared])
}

/** Of `SKILL.md` by itself too: it may be a link. */
function skillHash(path: string, worktree: string): string {
  return hashAll([hashFile(path), ...hashTree(dirname(path), worktree)])
}

/** Empty where one of them is. */
function hashAll(hashes: readonly string[]): string {
  return hashes.includes("") ? "" : createHash("sha256").update(hashes.join("\n")).digest("hex")
}

/** A line for each file below, with its path; empty for one without a hash. Links are not followed: their target counts. */
function hashTree(directory: string, worktree: string): string[] {
  if (basename(directory) === "node_modules") return []
  return list(directory).flatMap((entry) => {
    const path = join(directory, entry.name)
    if (entry.isDirectory()) return hashTree(path, worktree)
    const hash = entry.isSymbolicLink() ? `link ${readlinkSync(path)}` : hashFile(path)
    return [hash === "" ? "" : JSON.stringify([trustPath(worktree, path), hash])]
  })
}

function hashFile(path: string): string {
  try {
    const stats = statSync(path)
    if (!stats.isFile() || stats.size > maxBytes) return ""
    return createHash("sha256").update(readFileSync(path)).digest("hex")
  } catch {
    // Gone or not readable: no hash, so that it is not trusted.
    return ""
  }
}

/** Sorted by name. Empty for what is no directory or cannot be read: nothing can be loaded from there either. */
function list(directory: string): Dirent[] {
  try {
    return readdirSync(directory, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1))
  } catch {
    return []
  }
}

function isFile(path: string): boolean {
  try {
    return statSync(path).isFile()
  } catch {
    return false
  }
}
