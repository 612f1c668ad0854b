import { createHash } from "node:crypto"
import { lstatSync, readFileSync, readlinkSync, statSync } from "node:fs"
import { basename, dirname, join, relative, sep } from "node:path"
import { directoryEntries, isFile } from "../util/file-system.ts"
import { isRecord, parseJson } from "../util/json.ts"
import { realPath } from "../util/paths.ts"

/** A real path and the sha256 of the file in hex. */
export type FileHash = readonly [path: string, hash: string]

/** Larger files are not hashed, so that a hostile project cannot delay the start. In bytes. */
const maxFileBytes = 64 * 1024 * 1024

/** Returns the sha256 of a file in hex. Returns "" if it is not a file, unreadable or too large: it is then not trusted. */
export function hashFile(path: string): string {
  try {
    const stats = statSync(path)
    if (!stats.isFile() || stats.size > maxFileBytes) return ""
    return createHash("sha256").update(readFileSync(path)).digest("hex")
  } catch {
    // Deleted or unreadable.
    return ""
  }
}

/** Returns the sha256 of the lines in hex, or "" if there are no lines or a line is empty. */
export function hashLines(lines: readonly string[]): string {
  if (lines.length === 0 || lines.includes("")) return ""
  return createHash("sha256").update(lines.join("\n")).digest("hex")
}

/** The files of some directories. */
export interface TreeHash {
  /** One line per file with its path and hash, as input for {@link hashLines}. Empty if a file cannot be hashed. */
  lines: string[]
  contents: FileHash[]
}

/** Hashes each file in the directories. For a link it hashes the target path, not the content of the target. */
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
  /** Real directories of the packages. All their modules are in `contents`. */
  roots: string[]
  /** sha256 of each module, by its real path. */
  contents: FileHash[]
  /** One line per module or missing package, as input for {@link hashLines}. Empty if a module cannot be read. */
  lines: string[]
  /** Names of packages beyond the limits. Their modules are not hashed and can change. */
  beyond: string[]
}

interface DependencyLimits {
  files: number
  bytes: number
}

/**
 * Hashing this much takes about 0.2 s on a small machine. A plugin with its dependencies is typically a tenth of that
 * size.
 */
const defaultLimits: DependencyLimits = { files: 4000, bytes: 64 * 1024 * 1024 }

/**
 * Hashes the packages that `package.json` files name, resolved as Node resolves them, nearest first. Hashes every module
 * of a package, or none if that exceeds the limits. `provided` lists dependencies of the package itself that are never
 * loaded from disk.
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

/** Returns sorted names. Includes optional packages: Node loads them if they are installed. */
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
    // Loading the package reports the error.
    return {}
  }
}

/** Resolves a package as Node does. Returns its real path. */
function findPackage(name: string, from: string): string | undefined {
  for (let directory = from; ; directory = dirname(directory)) {
    const found = join(directory, "node_modules", name)
    if (isFile(join(found, "package.json"))) return realPath(found)
    if (dirname(directory) === directory) return undefined
  }
}

const code = /\.(?:[mc]?[jt]sx?|json|node|wasm)$/
const declaration = /\.d\.[mc]?ts$/

/** Returns undefined if the modules exceed the limits. Skips links: Node loads modules by their real paths. */
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
