import { lstatSync, readFileSync } from "node:fs"
import { dirname, join, relative } from "node:path"
import { directoryEntries, isFile } from "../util/file-system.ts"
import { isRecord, parseJson } from "../util/json.ts"
import { realPath } from "../util/paths.ts"
import { hashFile } from "./hash-file.ts"

/** What an installed package brings along, or finds beside it, as it is installed now. */
export interface PackageDependencies {
  /** Real directories of the packages whose modules are all in `contents`. */
  roots: string[]
  /** sha256 of each module, by its real path. */
  contents: [path: string, hash: string][]
  /** What tells these dependencies from others, a line each. Empty lines: something could not be read. */
  lines: string[]
  /** Names of packages that are too much to be hashed: they are not held to anything. */
  beyond: string[]
}

interface DependencyLimits {
  files: number
  bytes: number
}

/** Hashed in some 0.2 s on a small machine; plugins with their dependencies have a tenth of it. */
const defaultLimits: DependencyLimits = { files: 4000, bytes: 64 * 1024 * 1024 }

/**
 * Follows what each `package.json` names, by the directories in which Node looks, the nearest to the package first. Of
 * each package all that can be loaded as code is hashed, or nothing where that goes beyond the limits. `provided` are the
 * package's own dependencies that are never loaded from the disk.
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
    const place = relative(start, directory)
    if (!modules) {
      result.beyond.push(name)
      result.lines.push(JSON.stringify([place, "beyond"]))
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

/** Sorted. What is optional is loaded where it is there. */
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
    // Whoever loads it says what is wrong.
    return {}
  }
}

/** As Node looks for it. Links followed. */
function findPackage(name: string, from: string): string | undefined {
  for (let directory = from; ; directory = dirname(directory)) {
    const found = join(directory, "node_modules", name)
    if (isFile(join(found, "package.json"))) return realPath(found)
    if (dirname(directory) === directory) return undefined
  }
}

const code = /\.(?:[mc]?[jt]sx?|json|node|wasm)$/
const declaration = /\.d\.[mc]?ts$/

/** Undefined where they are more than the limits. Links are not followed: Node gives their real paths. */
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
