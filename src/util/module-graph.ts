import { readFileSync } from "node:fs"
import nodeModule, { createRequire, type LoadHookSync, type ResolveHookSync } from "node:module"
import { dirname, extname, join } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"
import { compileFunction } from "node:vm"
import { systemCode } from "./errors.ts"
import { own } from "./json.ts"
import { type PinnedFiles, readPinned, UnpinnedFileError } from "./pinned-files.ts"

/** A user's module and the files that it imports by path, now or later. */
export interface ModuleGraph {
  /** Import names that resolve to the given URLs without being installed. */
  aliases: Readonly<Record<string, string>>
  /**
   * Hashes of the files that may be loaded. Each file is read once and runs only if its bytes match its hash. Loading a
   * different or unlisted file throws {@link UnpinnedFileError}. An import by name counts as an import by path unless
   * it leads to another installed package. Packages are not checked.
   */
  pinned?: PinnedFiles
  /** Converts a TypeScript module to CommonJS. If undefined, Node strips the types instead. */
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
/** The directory URL and specifier of each `require` call with a path, keyed by the graph's mark. */
const requests = new Map<string, Map<string, [directory: string, specifier: string]>>()
let installed = false
let packageTransform: ModuleGraph["transform"]

/**
 * Sets the function that converts TypeScript in installed packages to CommonJS. Without it, these files cannot be
 * loaded, because Node does not remove types in installed packages. Call `transformPackages` before you open a graph.
 */
export function transformPackages(transform: (source: string, path: string) => string): void {
  packageTransform = transform
}

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
 * Removes the CommonJS modules of a graph from Node's cache, which is keyed by path, so that the next graph reads the
 * modules again. `files` are the root and the files reported to `onFile`. ES modules loaded by `require` stay cached.
 */
export function forgetCommonJs(mark: string, files: Iterable<string>): void {
  for (const file of files) delete commonJs.cache[file]
  for (const [directory, specifier] of requests.get(mark)?.values() ?? []) {
    // Node also caches how each specifier is resolved. Node drops a cached result when the specifier is requested again
    // and its module is no longer cached.
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

/**
 * Resolves the imports of the modules in a graph. A file that is imported by path becomes part of the graph, and its
 * URL receives the graph's mark.
 */
const resolve: ResolveHookSync = (specifier, context, next) => {
  const { parentURL } = context
  if (parentURL?.endsWith(forgetting)) throw new Error(`${specifier} is only removed from the cache`)
  const inUrl = markOf(parentURL)
  const mark = inUrl ?? marksOfPaths.get(pathOf(parentURL) ?? "")
  const graph = graphs.get(mark ?? "")
  const asWritten = (name: string) => resolveAsWritten(name, context, next)
  if (mark === undefined || !graph) {
    const isTransformed = transformed.has(pathOf(parentURL) ?? "")
    return isTransformed ? resolveLoosely(specifier, asWritten) : next(specifier, context)
  }
  const alias = own(graph.aliases, specifier)
  if (alias !== undefined) return { url: alias, shortCircuit: true }
  const resolved = resolveImport({ specifier, importer: pathOf(parentURL) }, asWritten, graph.onFile)
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

/**
 * Resolves an import of a converted module. The author wrote `import` and the conversion wrote `require`, so the
 * conditions for `import` are used first, and then the conditions for `require`.
 */
function resolveAsWritten(
  ...[specifier, context, next]: Parameters<ResolveHookSync>
): ReturnType<ResolveHookSync> {
  const { conditions, parentURL } = context
  if (!conditions.includes("require") || !transformed.has(pathOf(parentURL) ?? ""))
    return next(specifier, context)
  try {
    const written = conditions.map((condition) => (condition === "require" ? "import" : condition))
    return next(specifier, { ...context, conditions: written })
  } catch {
    return next(specifier, context)
  }
}

function rememberRequest(mark: string, directory: string, specifier: string): void {
  const known = requests.get(mark) ?? new Map()
  requests.set(mark, known)
  known.set(`${directory} ${specifier}`, [directory, specifier])
}

const load: LoadHookSync = (url, context, next) => {
  const path = pathOf(url)
  if (path === undefined) return next(url, context)
  const mark = markOf(url) ?? marksOfPaths.get(path)
  const graph = graphs.get(mark ?? "")
  const isTypeScript = /\.m?ts$/.test(path)
  const transform = isTypeScript ? (graph?.transform ?? transformOfPackage(path)) : undefined
  if (mark !== undefined && graph) marksOfPaths.set(path, mark)
  if (transform) {
    transformed.add(path)
    const bytes = graph?.pinned ? readPinned(path, graph.pinned) : readFileSync(path)
    const converted = transform(bytes.toString(), path)
    return context.conditions.includes("require")
      ? { format: "commonjs", source: converted, shortCircuit: true }
      : { format: "module", source: facadeOf(path, converted), shortCircuit: true }
  }
  const isScript = isTypeScript || path.endsWith(".js")
  if (!graph || (!graph.pinned && !isScript)) return next(url, context)
  const bytes = graph.pinned ? readPinned(path, graph.pinned) : readFileSync(path)
  const known = formats[extname(path)] ?? context.format
  const format = isTypeScript
    ? "module-typescript"
    : (known ?? (isScript ? formatOf(bytes.toString()) : next(url, context).format))
  return { format, source: bytes, shortCircuit: true }
}

/**
 * Returns the format of a `.js` file whose package.json has no `type`: CommonJS if the source compiles as CommonJS.
 * Node detects the format in the same way, but prints a warning if the file is an ES module.
 */
function formatOf(source: string): "commonjs" | "module" {
  try {
    compileFunction(source, ["exports", "require", "module", "__filename", "__dirname"])
    return "commonjs"
  } catch {
    // If this is a syntax error in CommonJS as well, Node reports it.
    return "module"
  }
}

/** Paths of the TypeScript modules that were converted to CommonJS. */
const transformed = new Set<string>()

/** Returns the conversion for a TypeScript file in an installed package. Node does not strip types in packages. */
function transformOfPackage(path: string): ModuleGraph["transform"] {
  return packageOf(path) === undefined ? undefined : packageTransform
}

/**
 * Returns the source of an ES module that requires the converted module and has its exports. It is needed because Node
 * cannot remove an ES module from its cache and refuses to import TypeScript in `node_modules` as CommonJS. The names
 * of the exports are read from the converted text, because running the converted module before the modules that it
 * needs could fail.
 */
function facadeOf(path: string, converted: string): string {
  const names = new Set<string>()
  for (const [, plain, quoted, defined] of converted.matchAll(exportedName))
    names.add(plain ?? quoted ?? defined ?? "")
  const variables = new Map([...converted.matchAll(requiredModule)].map(([, name, module]) => [name, module]))
  const stars = [...converted.matchAll(starExport)].flatMap(([, name]) => variables.get(name) ?? [])
  const others = [...names].filter((name) => name !== "default" && name !== "__esModule")
  return [
    'import { createRequire } from "node:module"',
    ...stars.map((module) => `export * from ${JSON.stringify(module)}`),
    `const path = ${JSON.stringify(path)}`,
    "const exported = createRequire(path)(path)",
    'export { exported as "module.exports" }',
    "export default exported?.__esModule ? exported.default : exported",
    ...others.map((name, index) => `const e${index} = exported[${JSON.stringify(name)}]`),
    ...others.map((name, index) => `export { e${index} as ${JSON.stringify(name)} }`),
  ].join("\n")
}

/** These patterns match the code that jiti writes for exports, for a required module, and for `export *`. */
const exportedName =
  /\bexports(?:\.([\w$]+)|\["([^"]*)"\]) =(?!=)|\bObject\.defineProperty\(exports, "([^"]*)"/g
const requiredModule = /\bvar (_[\w$]+) = (?:_interopRequireWildcard\()?require\("([^"]+)"\)/g
const starExport = /\bObject\.keys\((_[\w$]+)\)\.forEach\(function \(key\)/g

const formats: Readonly<Record<string, string>> = { ".mjs": "module", ".cjs": "commonjs", ".json": "json" }

/**
 * Returns true for a file in an installed package other than the importer's package. A name can also resolve to the
 * importer's own package or, through a link, to a workspace.
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
 * Resolves like Node, then like bundlers. If both fail, throws Node's error, records the request for {@link
 * missingImport}, and passes the candidate paths of a relative import to `onMissing`.
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

/** Returns true for a path, for a `file:` URL, and for a `#name`, which package.json resolves. */
function isPath(specifier: string): boolean {
  return /^(?:\.{0,2}\/|\.{1,2}$|file:|#)/i.test(specifier)
}
