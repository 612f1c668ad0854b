import { readFileSync } from "node:fs"
import nodeModule, { createRequire, type LoadHookSync, type ResolveHookSync } from "node:module"
import { dirname, extname, join } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"
import { systemCode } from "./errors.ts"
import { own } from "./json.ts"
import { type PinnedFiles, readPinned, UnpinnedFileError } from "./pinned-files.ts"

/** A user's module and the files that it imports by path, now or later. */
export interface ModuleGraph {
  /** Import names that resolve to the given URLs without being installed. */
  aliases: Readonly<Record<string, string>>
  /**
   * Hashes of the files that may load. Each file is read once and runs only if its bytes match its hash. A different or
   * unlisted file throws {@link UnpinnedFileError}. An import by name counts as an import by path unless it leads to
   * another installed package. Packages are not checked.
   */
  pinned?: PinnedFiles
  /** Converts a TypeScript module to CommonJS. Without it, Node strips the types. */
  transform?: (source: string, path: string) => string
  /**
   * Receives each file that is imported by path, before the file is read, and each candidate path that does not exist.
   * `of` is the mark of another graph if Node has already loaded the file, and everything it requires, for that graph.
   */
  onFile?: (path: string, of?: string) => void
}

const graphs = new Map<string, ModuleGraph>()
/** Maps the path of each CommonJS module to the mark of its graph. CommonJS identifies modules only by path. */
const marksOfPaths = new Map<string, string>()
/** The directory URL and specifier of each `require` by path, keyed by mark. */
const requests = new Map<string, Map<string, [directory: string, specifier: string]>>()
let installed = false

/** Returns the URL that imports `path` as the root of a graph. The mark must be unique. */
export function openModuleGraph(path: string, mark: string, graph: ModuleGraph): string {
  if (!installed) nodeModule.registerHooks({ resolve, load })
  installed = true
  graphs.set(mark, graph)
  const url = pathToFileURL(path)
  url.searchParams.set("tackle", mark)
  return url.href
}

/**
 * Removes the CommonJS modules of a graph from Node's cache, which is keyed by path, so that the next graph reads them
 * again. `files` are the root and the files reported to `onFile`. ES modules loaded by `require` stay cached.
 */
export function forgetCommonJs(mark: string, files: Iterable<string>): void {
  for (const file of files) delete commonJs.cache[file]
  for (const [directory, specifier] of requests.get(mark)?.values() ?? []) {
    // Node also caches the result of each resolution. It drops the cached result on a request whose module is gone.
    try {
      createRequire(`${directory}${forgetting}`)(specifier)
    } catch {
      // Expected: the resolve hook rejects these requests.
    }
  }
  requests.delete(mark)
}

const commonJs = createRequire(import.meta.url)
const forgetting = "?tackle-forgets"

/** Adds files that a module of a graph imports by path to the graph, and puts the mark of the graph in their URLs. */
const resolve: ResolveHookSync = (specifier, context, next) => {
  const { parentURL } = context
  if (parentURL?.endsWith(forgetting)) throw new Error(`${specifier} is only removed from the cache`)
  const inUrl = markOf(parentURL)
  const mark = inUrl ?? marksOfPaths.get(pathOf(parentURL) ?? "")
  const graph = graphs.get(mark ?? "")
  if (mark === undefined || !graph) return next(specifier, context)
  const alias = own(graph.aliases, specifier)
  if (alias !== undefined) return { url: alias, shortCircuit: true }
  const resolved = resolveImport(
    { specifier, importer: pathOf(parentURL) },
    (name) => next(name, context),
    graph.onFile,
  )
  const path = pathOf(resolved.url)
  if (path === undefined) return resolved
  const isOwn = graph.pinned !== undefined && !isOfOtherPackage(path, pathOf(parentURL))
  if (!isPath(specifier) && !isOwn) return resolved
  if (graph.pinned && !graph.pinned.has(path)) {
    throw new UnpinnedFileError(
      path,
      `is imported by ${pathOf(parentURL)}, but was not trusted together with that file.`,
    )
  }
  const other = commonJs.cache[path] && marksOfPaths.get(path)
  graph.onFile?.(path, other === mark ? undefined : other)
  if (!context.conditions.includes("require"))
    return { ...resolved, url: `${resolved.url.replace(/[?#].*$/, "")}?tackle=${mark}` }
  marksOfPaths.set(path, mark)
  rememberRequest(mark, new URL(".", parentURL).href, specifier)
  return resolved
}

function rememberRequest(mark: string, directory: string, specifier: string): void {
  const known = requests.get(mark) ?? new Map()
  requests.set(mark, known)
  known.set(`${directory} ${specifier}`, [directory, specifier])
}

const load: LoadHookSync = (url, context, next) => {
  const path = pathOf(url)
  const mark = markOf(url) ?? marksOfPaths.get(path ?? "")
  const graph = graphs.get(mark ?? "")
  if (path === undefined || mark === undefined || !graph) return next(url, context)
  const { pinned, transform } = graph
  const isTypeScript = /\.m?ts$/.test(path)
  if (!pinned && !(transform && isTypeScript)) {
    marksOfPaths.set(path, mark)
    return next(url, context)
  }
  const bytes = pinned ? readPinned(path, pinned) : readFileSync(path)
  marksOfPaths.set(path, mark)
  if (isTypeScript && transform) {
    const text = transform(bytes.toString(), path)
    // `require` loads the file as CommonJS, because Node cannot remove an ES module from its cache.
    return context.conditions.includes("require")
      ? { format: "commonjs", source: text, shortCircuit: true }
      : { format: "module", source: asModule(text, path), shortCircuit: true }
  }
  const format = isTypeScript ? "module-typescript" : (formats[extname(path)] ?? next(url, context).format)
  return { format, source: bytes, shortCircuit: true }
}

/**
 * Wraps CommonJS source in a module that exports its `module.exports`. If Node loaded the source as CommonJS, Node
 * would check the file extension again and strip types, which it refuses to do in `node_modules`.
 */
function asModule(text: string, path: string): string {
  const values = [path, dirname(path)].map((value) => JSON.stringify(value))
  return [
    'import { createRequire } from "node:module"',
    "const loaded = { exports: {} }",
    `;(function (exports, require, module, __filename, __dirname) {${text}\n})`,
    `(loaded.exports, createRequire(import.meta.url), loaded, ${values.join(", ")})`,
    "const exported = loaded.exports",
    'export { exported as "module.exports" }',
  ].join("\n")
}

const formats: Readonly<Record<string, string>> = { ".mjs": "module", ".cjs": "commonjs", ".json": "json" }

/**
 * Returns true for a file of an installed package other than the importer's. A name can also resolve to the importer's
 * own package or, through a link, to a workspace.
 */
function isOfOtherPackage(path: string, importer: string | undefined): boolean {
  const directory = packageOf(path)
  return directory !== undefined && directory !== packageOf(importer ?? "")
}

/**
 * Returns the directory of the installed package that contains the real path, or undefined if no package contains it.
 */
function packageOf(path: string): string | undefined {
  return /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/s.exec(path)?.[0]
}

function markOf(url: string | undefined): string | undefined {
  return url === undefined ? undefined : /\?tackle=([^&#]*)$/.exec(url)?.[1]
}

function pathOf(url: string | undefined): string | undefined {
  return url?.startsWith("file:") ? fileURLToPath(url) : undefined
}

/**
 * Resolves like Node, then like bundlers. If both fail, throws Node's error and records the request for {@link
 * missingImport}.
 */
function resolveImport<T>(
  { specifier, importer }: { specifier: string; importer: string | undefined },
  next: (specifier: string) => T,
  onMissing: (path: string) => void = () => {},
): T {
  try {
    return resolveLoosely(specifier, next)
  } catch (error) {
    const isMissing = ["ERR_MODULE_NOT_FOUND", "MODULE_NOT_FOUND"].includes(systemCode(error) ?? "")
    if (!isMissing || importer === undefined) throw error
    if (error instanceof Error) missingImports.set(error, { specifier, importer })
    if (specifier.startsWith(".")) {
      const base = join(dirname(importer), specifier)
      for (const ending of ["", ...endings]) onMissing(`${base}${ending}`)
    }
    throw error
  }
}

/** An import that was not found. */
interface MissingImport {
  /** Specifier as it appears in the source. */
  specifier: string
  /** Absolute path of the importing file. */
  importer: string
}

const missingImports = new WeakMap<object, MissingImport>()

/** Returns the missing import that made a graph fail to load, or undefined for other errors. */
export function missingImport(error: unknown): MissingImport | undefined {
  return typeof error === "object" && error !== null ? missingImports.get(error) : undefined
}

/** Extensions that bundlers add to a path or substitute for `.js`. */
const endings = [".ts", ".mts", ".js", ".mjs", "/index.ts", "/index.js"]

function resolveLoosely<T>(specifier: string, next: (specifier: string) => T): T {
  try {
    return next(specifier)
  } catch (error) {
    if (!isPath(specifier) || specifier.startsWith("#")) throw error
    const base = specifier.replace(/\.m?js$/, "")
    for (const ending of endings) {
      try {
        return next(`${base}${ending}`)
      } catch {
        // If no candidate exists, the error for the original specifier is thrown.
      }
    }
    throw error
  }
}

/** Returns true if the specifier names a file and not a package. False for `#name`, which package.json resolves. */
export function isPath(specifier: string): boolean {
  return /^(?:\.{0,2}\/|\.{1,2}$|file:|#)/i.test(specifier)
}
