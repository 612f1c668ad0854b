import { createHash } from "node:crypto"
import { existsSync } from "node:fs"
import { createRequire } from "node:module"
import { extname } from "node:path"
import { pathToFileURL } from "node:url"
import type { Jiti } from "jiti"
import { systemCode } from "./errors.ts"
import { type FileStamps, fileStamp, isCurrent, stampFiles } from "./file-stamp.ts"
import { forgetCommonJs, type ModuleGraph, openModuleGraph, transformPackages } from "./module-graph.ts"
import { realPath } from "./paths.ts"

/** Modules that a user's module can import without installing them. Maps each name to the URL of Tackle's copy. */
export type ModuleAliases = Readonly<Record<string, string>>

/**
 * Imports the current version of a user's JavaScript or TypeScript file. `aliases` apply to the file and its imports by
 * path. If `pinned` is given, only bytes with a matching hash run: see {@link ModuleGraph}. Throws the import error if
 * the module cannot be loaded.
 *
 * Loads the module again only if the latest load failed, or if the file, its imports by path or the options have
 * changed. Earlier versions keep running and stay in memory. Packages are loaded once.
 */
export async function loadModule(path: string, source: ModuleSource): Promise<Record<string, unknown>> {
  const loading = currentLoading(path, source)
  try {
    return await importGraph(path, loading, source)
  } catch (error) {
    // Node caches a failed module, so the next attempt needs a different URL.
    loading.failed = true
    throw error
  }
}

/**
 * Returns the files that the latest load of a module used, even if it failed, with their stamps at the first access.
 * Includes missing files. The result grows when the module imports more files later.
 */
export function moduleFiles(path: string): FileStamps {
  return loadings.get(path)?.files ?? new Map()
}

type ModuleSource = Pick<ModuleGraph, "aliases" | "pinned">

interface Loading {
  /** Query parameter in the URLs of loaded modules. */
  mark: string
  /** Hash of the load options. */
  digest: string
  files: Map<string, string>
  failed: boolean
}

/** The latest load of each path. */
const loadings = new Map<string, Loading>()
let marks = 0

function currentLoading(path: string, { aliases, pinned }: ModuleSource): Loading {
  const digest = digestOf(JSON.stringify([aliases, pinned ? [...pinned] : null]))
  const known = loadings.get(path)
  if (known && !known.failed && known.digest === digest && isCurrent(known.files)) return known
  if (known) forgetCommonJs(known.mark, known.files.keys())
  marks += 1
  const loading = {
    mark: String(marks),
    digest,
    files: stampFiles(new Set([path, realPath(path)])),
    failed: false,
  }
  loadings.set(path, loading)
  return loading
}

async function importGraph(
  path: string,
  { mark, files }: Loading,
  source: ModuleSource,
): Promise<Record<string, unknown>> {
  const onFile = (file: string, of?: string) => {
    if (!files.has(file)) files.set(file, fileStamp(file))
    const shared = [...loadings.values()].find((loading) => loading.mark === of)
    for (const [other, stamp] of shared?.files ?? []) if (!files.has(other)) files.set(other, stamp)
  }
  const graph: ModuleGraph = { ...source, onFile }
  transformPackages(transform)
  try {
    return await import(openModuleGraph(path, mark, graph))
  } catch (error) {
    if (!isRefusedSyntax(error)) throw error
  }
  const loaded = await import(openModuleGraph(path, `${mark}-transformed`, { ...graph, transform }))
  return loaded["module.exports"] ?? loaded
}

/**
 * Resolves the specifier of a package entry to a file URL, as `require` does in the file `base`. Returns undefined if
 * the specifier does not lead to an existing file.
 */
export function resolveFrom(base: string, specifier: string): string | undefined {
  try {
    const path = createRequire(base).resolve(specifier)
    return existsSync(path) ? pathToFileURL(path).href : undefined
  } catch {
    return undefined
  }
}

/**
 * Returns true if Node cannot run a module by stripping its types, for example because of enums. The module is
 * transformed instead.
 */
function isRefusedSyntax(error: unknown): boolean {
  return systemCode(error) === "ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX"
}

let jiti: Jiti | undefined

/** Converts a TypeScript module to CommonJS. Loads jiti at the first call, because most modules do not need it. */
function transform(source: string, filename: string): string {
  const { createJiti } = createRequire(import.meta.url)("jiti") as typeof import("jiti")
  jiti ??= createJiti(import.meta.url, { fsCache: false, moduleCache: false })
  return jiti.transform({ source, filename, ts: true })
}

function digestOf(text: string): string {
  return createHash("sha256").update(text).digest("hex")
}

/** Extensions of module files. */
const moduleExtensions: readonly string[] = [".js", ".mjs", ".ts", ".mts"]

/** Returns true for the name of a file to pass to {@link loadModule}. Declaration files are not modules. */
export function isModuleFile(name: string): boolean {
  return moduleExtensions.includes(extname(name)) && !/\.d\.m?ts$/.test(name)
}
