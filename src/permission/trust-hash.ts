import { createHash } from "node:crypto"
import { lstatSync, readFileSync, readlinkSync, statSync } from "node:fs"
import { basename, dirname, join, relative, sep } from "node:path"
import { directoryEntries, isFile } from "../util/file-system.ts"
import { isRecord, parseJson } from "../util/json.ts"
import { realPath } from "../util/paths.ts"

/** The real path of a file, and the SHA-256 of its content in hex. The hash is empty if the file cannot be read. */
export type FileHash = readonly [path: string, hash: string]

/** Maximum size of a hashed file, in bytes. Without a limit, a hostile project could delay startup. */
const maxFileBytes = 64 * 1024 * 1024

/**
 * Returns the SHA-256 of a file in hex, or "" if the path is not a file, or the file is unreadable or too large. An
 * item with an empty hash is not trusted.
 */
export function hashFile(path: string): string {
  try {
    const stats = statSync(path)
    if (!stats.isFile() || stats.size > maxFileBytes) return ""
    return createHash("sha256").update(readFileSync(path)).digest("hex")
  } catch {
    // The file was deleted or is unreadable.
    return ""
  }
}

/** Returns the SHA-256 of the lines in hex, or "" if there are no lines or a line is empty. */
export function hashLines(lines: readonly string[]): string {
  if (lines.length === 0 || lines.includes("")) return ""
  return createHash("sha256").update(lines.join("\n")).digest("hex")
}

/** The hashes of the files in one or more directories. */
export interface TreeHash {
  /**
   * One line per file with its path and hash, as input for {@link hashLines}. A line is empty if its file cannot be
   * hashed.
   */
  lines: string[]
  contents: FileHash[]
}

/**
 * Hashes each file in the directories, except in `node_modules`. For a link, records the path of its target instead.
 * The result's lines contain paths relative to `root`.
 */
export function hashTree(directories: readonly string[], root: string): TreeHash {
  const tree: TreeHash = { lines: [], contents: [] }
  const visit = (directory: string): void => {
    if (basename(directory) === "node_modules") return
    for (const entry of directoryEntries(directory)) {
      const path = join(directory, entry.name)
      if (entry.isDirectory()) {
        visit(path)
        continue
      }
      const hash = entry.isSymbolicLink() ? `link ${readlinkSync(path)}` : hashFile(path)
      const name = relative(root, path).split(sep).join("/")
      tree.lines.push(hash === "" ? "" : JSON.stringify([name, hash]))
      if (hash !== "" && !entry.isSymbolicLink()) tree.contents.push([realPath(path), hash])
    }
  }
  for (const directory of directories) visit(directory)
  return tree
}

/** The packages that an installed package can load, with the hashes of their modules. */
export interface PackageDependencies {
  /** Real paths of the package directories. `contents` includes all their modules. */
  roots: string[]
  /** Real path of each module, and its SHA-256 in hex. */
  contents: FileHash[]
  /**
   * Lines for modules, missing packages and packages that exceed the limits, as input for {@link hashLines}. A line is
   * empty if its module cannot be read.
   */
  lines: string[]
  /**
   * Names of packages that exceed the limits. Their modules are not hashed, so changes to these modules are not
   * detected.
   */
  beyond: string[]
}

interface DependencyLimits {
  files: number
  bytes: number
}

/**
 * Maximum number of hashed files, and their maximum total size in bytes. Hashing that many files takes about 0.2 s on a
 * small machine. A plugin with its dependencies typically reaches a tenth of each limit.
 */
const defaultLimits: DependencyLimits = { files: 4000, bytes: 64 * 1024 * 1024 }

/**
 * Hashes the direct and indirect dependencies of a package, nearest first. Resolves them as Node does. Hashes every
 * module of a package, or no module if the package would exceed the limits. `provided` lists direct dependencies that
 * are never loaded from disk.
 */
export function hashDependencies(
  root: string,
  provided: readonly string[] = [],
  limits: DependencyLimits = defaultLimits,
): PackageDependencies {
  const start = realPath(root)
  const result: PackageDependencies = { roots: [], contents: [], lines: [], beyond: [] }
  const seen = new Set([start])
  const queue = [start]
  let { files, bytes } = limits

  function take(directory: string, name: string): void {
    seen.add(directory)
    const modules = modulesIn(directory, { files, bytes })
    const path = relative(start, directory)
    if (!modules) {
      result.beyond.push(name)
      result.lines.push(JSON.stringify([path, "beyond"]))
      return
    }
    files -= modules.paths.length
    bytes -= modules.bytes
    result.roots.push(directory)
    for (const path of modules.paths) {
      const hash = hashFile(path)
      result.lines.push(hash === "" ? "" : JSON.stringify([relative(start, path), hash]))
      result.contents.push([path, hash])
    }
    queue.push(directory)
  }

  for (const directory of queue) {
    for (const name of dependenciesOf(directory)) {
      if (directory === start && provided.includes(name)) continue
      const found = findPackage(name, directory)
      if (found === undefined) result.lines.push(JSON.stringify([relative(start, directory), name, "absent"]))
      else if (!seen.has(found)) take(found, name)
    }
  }
  return result
}

/**
 * Returns the sorted names of the dependencies. Includes optional and peer dependencies, because Node loads them if
 * they are installed.
 */
function dependenciesOf(directory: string): string[] {
  const manifest = readManifest(directory)
  const kinds = ["dependencies", "optionalDependencies", "peerDependencies"]
  const names = kinds.flatMap((kind) => {
    const named = manifest[kind]
    return isRecord(named) ? Object.keys(named) : []
  })
  return [...new Set(names)].filter((name) => packageName.test(name)).sort()
}

const packageName = /^(?:@[\w.~-]+\/)?[\w~-][\w.~-]*$/

function readManifest(directory: string): Record<string, unknown> {
  try {
    const parsed = parseJson(readFileSync(join(directory, "package.json"), "utf8"))
    return parsed.ok && isRecord(parsed.value) ? parsed.value : {}
  } catch {
    // The error is reported when the package is loaded.
    return {}
  }
}

/** Returns the real path of a package, resolved as Node does. Undefined if the package is not installed. */
function findPackage(name: string, from: string): string | undefined {
  for (let directory = from; ; directory = dirname(directory)) {
    const found = join(directory, "node_modules", name)
    if (isFile(join(found, "package.json"))) return realPath(found)
    if (dirname(directory) === directory) return undefined
  }
}

const code = /\.(?:[mc]?[jt]sx?|json|node|wasm)$/
const declaration = /\.d\.[mc]?ts$/

/**
 * Returns the modules of a package and their total size, or undefined if they exceed the limits. Skips links, because
 * Node loads modules by their real paths.
 */
function modulesIn(root: string, limits: DependencyLimits): { paths: string[]; bytes: number } | undefined {
  const paths: string[] = []
  const directories = [root]
  let bytes = 0
  for (const directory of directories) {
    for (const entry of directoryEntries(directory)) {
      const path = join(directory, entry.name)
      if (entry.isDirectory() && entry.name !== "node_modules") directories.push(path)
      if (!entry.isFile() || !code.test(entry.name) || declaration.test(entry.name)) continue
      paths.push(path)
      bytes += lstatSync(path, { throwIfNoEntry: false })?.size ?? 0
      if (paths.length > limits.files || bytes > limits.bytes) return undefined
    }
  }
  return { paths, bytes }
}
