import { createHash } from "node:crypto"
import { existsSync } from "node:fs"
import { createRequire } from "node:module"
import { extname } from "node:path"
import { pathToFileURL } from "node:url"
import { systemCode } from "./errors.ts"
import { type FileStamps, fileStamp, isCurrent, stampFiles } from "./file-stamp.ts"
import { forgetCommonJs, type ModuleGraph, openModuleGraph } from "./module-graph.ts"
import { realPath } from "./paths.ts"

/** What a user's module may import without having it installed: the name it writes → the URL of our own copy. */
export type ModuleAliases = Readonly<Record<string, string>>

/**
 * Imports a JavaScript or TypeScript file of the user as it is now on the disk: what was loaded of it before is given
 * again only where neither it nor what it imports by path has changed. TypeScript runs as it is: by Node's own type
 * stripping, and where that refuses it (enums, parameter properties, packages in TypeScript) as jiti writes it. A name in
 * `aliases` resolves to ours, from that file and from what it imports beside it. With `pinned`, nothing runs but the very
 * bytes that were hashed: see {@link ModuleGraph}. Throws what the module throws.
 *
 * Each change is a graph of its own: what ran before goes on as it was, and stays in memory. Packages are loaded once.
 */
export async function loadModule(path: string, source: ModuleSource): Promise<Record<string, unknown>> {
  const loading = currentLoading(path, source)
  try {
    return await importGraph(path, loading, source)
  } catch (error) {
    // Node keeps a module that failed: it is tried again under another name.
    loading.failed = true
    throw error
  }
}

/**
 * The files that a module consists of, by their stamps when they were first asked for; also those that were missing. For
 * the last time that it was loaded, whether that went well or not. Grows with what it imports later.
 */
export function moduleFiles(path: string): FileStamps {
  return loadings.get(path)?.files ?? new Map()
}

type ModuleSource = Pick<ModuleGraph, "aliases" | "pinned">

interface Loading {
  /** What its URLs are marked with. */
  mark: string
  /** Of all that it was loaded with but its files. */
  digest: string
  files: Map<string, string>
  failed: boolean
}

/** The last of each path. */
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
  try {
    return await import(openModuleGraph(path, mark, graph))
  } catch (error) {
    if (!isRefusedSyntax(error)) throw error
  }
  const transform = await createTransform()
  const loaded = await import(openModuleGraph(path, `${mark}-transformed`, { ...graph, transform }))
  return loaded["module.exports"] ?? loaded
}

/** The file behind a package's or our own entry, or undefined where there is none. */
export function resolveFrom(base: string, specifier: string): string | undefined {
  try {
    const path = createRequire(base).resolve(specifier)
    return existsSync(path) ? pathToFileURL(path).href : undefined
  } catch {
    return undefined
  }
}

/** Node strips no types of what lies in `node_modules`. */
const refusals: ReadonlySet<string | undefined> = new Set([
  "ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX",
  "ERR_UNSUPPORTED_NODE_MODULES_TYPE_STRIPPING",
])

function isRefusedSyntax(error: unknown): boolean {
  return refusals.has(systemCode(error))
}

async function createTransform(): Promise<(source: string, path: string) => string> {
  const { createJiti } = await import("jiti")
  const jiti = createJiti(import.meta.url, { fsCache: false, moduleCache: false })
  return (source, filename) => jiti.transform({ source, filename, ts: true })
}

function digestOf(text: string): string {
  return createHash("sha256").update(text).digest("hex")
}

/** Extensions of files that hold a module. */
export const moduleExtensions: readonly string[] = [".js", ".mjs", ".ts", ".mts"]

/** True for a file that {@link loadModule} takes. Declarations are not modules. */
export function isModuleFile(name: string): boolean {
  return moduleExtensions.includes(extname(name)) && !/\.d\.m?ts$/.test(name)
}
