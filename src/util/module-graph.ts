import { readFileSync } from "node:fs"
import { createRequire, type LoadHookSync, type ResolveHookSync, registerHooks } from "node:module"
import { dirname, extname } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"
import { type PinnedFiles, readPinned, UnpinnedFileError } from "./pinned-file.ts"
import { isPath, resolveImport } from "./resolve-import.ts"

/** A module of the user with all that it imports beside it, now or later. */
export interface ModuleGraph {
  /** Names that it may import without having them installed, with the URL of each. */
  aliases: Readonly<Record<string, string>>
  /**
   * Each file is read once, its bytes are held against its hash, and these bytes run. A file with other content, or one
   * that is imported by its path and not listed, is an {@link UnpinnedFileError}. A name that leads to no other installed
   * package counts as a path. Packages are not held against anything.
   */
  pinned?: PinnedFiles
  /** Makes a CommonJS module of a TypeScript one. Without it Node strips the types. */
  transform?: (source: string, path: string) => string
  /**
   * Hears of each file that is imported by path before it is read, and of those that were looked for and are not there.
   * `of`: the mark of the graph for which Node has read it already, with all that it requires.
   */
  onFile?: (path: string, of?: string) => void
}

const graphs = new Map<string, ModuleGraph>()
/** CommonJS modules know each other by path alone: the mark of the graph that each belongs to. */
const marksOfPaths = new Map<string, string>()
/** By mark: what its modules asked `require` for by path, as URL of the directory and specifier. */
const requests = new Map<string, Map<string, [directory: string, specifier: string]>>()
let installed = false

/** The URL that imports `path` as the beginning of a graph. The mark is that graph's alone. */
export function openModuleGraph(path: string, mark: string, graph: ModuleGraph): string {
  if (!installed) registerHooks({ resolve, load })
  installed = true
  graphs.set(mark, graph)
  const url = pathToFileURL(path)
  url.searchParams.set("tackle", mark)
  return url.href
}

/**
 * Lets CommonJS modules of a graph be read anew by the next one: Node keeps them by path. `files` are what its `onFile`
 * heard of, and its first. An ES module that was loaded by `require` cannot be forgotten.
 */
export function forgetCommonJs(mark: string, files: Iterable<string>): void {
  for (const file of files) delete commonJs.cache[file]
  for (const [directory, specifier] of requests.get(mark)?.values() ?? []) {
    // Node also keeps where a request led, and drops that at a request that finds its module gone.
    try {
      createRequire(`${directory}${forgetting}`)(specifier)
    } catch {
      // Always: the hook below lets it get no further.
    }
  }
  requests.delete(mark)
}

const commonJs = createRequire(import.meta.url)
const forgetting = "?tackle-forgets"

/** Files that a module of a graph imports by path belong to it too, and carry its mark in their URL. */
const resolve: ResolveHookSync = (specifier, context, next) => {
  const { parentURL } = context
  if (parentURL?.endsWith(forgetting)) throw new Error(`${specifier} is not asked for, only forgotten`)
  const inUrl = markOf(parentURL)
  const mark = inUrl ?? marksOfPaths.get(pathOf(parentURL) ?? "")
  const graph = graphs.get(mark ?? "")
  if (mark === undefined || !graph) return next(specifier, context)
  const alias = graph.aliases[specifier]
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
      `is imported by ${pathOf(parentURL)}, but trust in that does not cover it.`,
    )
  }
  const other = commonJs.cache[path] && marksOfPaths.get(path)
  graph.onFile?.(path, other === mark ? undefined : other)
  if (!context.conditions.includes("require"))
    return { ...resolved, url: `${resolved.url.replace(/[?#].*$/, "")}?tackle=${mark}` }
  marksOfPaths.set(path, mark)
  noteRequest(mark, new URL(".", parentURL).href, specifier)
  return resolved
}

function noteRequest(mark: string, directory: string, specifier: string): void {
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
    // Not as a module there: Node could not forget that.
    return context.conditions.includes("require")
      ? { format: "commonjs", source: text, shortCircuit: true }
      : { format: "module", source: asModule(text, path), shortCircuit: true }
  }
  const format = isTypeScript ? "module-typescript" : (formats[extname(path)] ?? next(url, context).format)
  return { format, source: bytes, shortCircuit: true }
}

/**
 * A CommonJS text as a module whose `require` gives what the text exports. As CommonJS Node would look at the ending of
 * the file once more and strip types, which it refuses in `node_modules`.
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
 * True for a file of an installed package that is not the importer's. A name may also lead to the importer's own package,
 * or through a link to sources that lie anywhere: a project refers to itself by its name, or has itself as a workspace.
 */
function isOfOtherPackage(path: string, importer: string | undefined): boolean {
  const directory = packageOf(path)
  return directory !== undefined && directory !== packageOf(importer ?? "")
}

/** The directory of the installed package that a file belongs to; undefined for a file of none. The path is a real one. */
function packageOf(path: string): string | undefined {
  return /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/s.exec(path)?.[0]
}

function markOf(url: string | undefined): string | undefined {
  return url === undefined ? undefined : /\?tackle=([^&#]*)$/.exec(url)?.[1]
}

function pathOf(url: string | undefined): string | undefined {
  return url?.startsWith("file:") ? fileURLToPath(url) : undefined
}
