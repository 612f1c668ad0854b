import { existsSync } from "node:fs"
import { readFile } from "node:fs/promises"
import { dirname, join, relative, sep } from "node:path"
import ignore, { type Ignore } from "ignore"
import { systemCode } from "../util/errors.ts"

/** Which paths the ignore files from some root down to one directory exclude. */
export interface IgnoreRules {
  /** For an entry of that directory; its parents are taken as included. */
  ignores(path: string, directory: boolean): boolean
  /** The rules inside a directory below, whose entries are `names`. */
  enter(directory: string, names: ReadonlySet<string>): Promise<IgnoreRules>
}

/** The files of one directory, the weaker first: within them the last rule that matches decides. */
const ignoreFiles = [".git/info/exclude", ".gitignore", ".ignore", ".rgignore"]

interface Layer {
  directory: string
  matcher: Ignore
}

/** What holds for a directory before its own ignore files are read. */
export interface RulesAbove {
  rules: IgnoreRules
  /** They would exclude the directory or all that is in it: whoever asks for it by name wants to do without them. */
  excluded: boolean
  /** The directory lies in a git repository. */
  repository: boolean
}

/** The rules that reach a directory from above: up to the root of its git repository, or of the file system. */
export async function rulesAbove(directory: string): Promise<RulesAbove> {
  const layers: Layer[] = []
  let repository = isRepository(directory)
  for (let below = directory; !repository && dirname(below) !== below; below = dirname(below)) {
    const layer = await readLayer(dirname(below))
    if (layer) layers.push(layer)
    repository = isRepository(dirname(below))
  }
  const excluded = decide(layers, directory, true) || decide(layers, join(directory, "any"), false)
  return { rules: createRules(excluded ? [] : layers), excluded, repository }
}

/** `layers`: the deepest first, whose word counts before that of the others. */
function createRules(layers: readonly Layer[]): IgnoreRules {
  return {
    ignores: (path, directory) => decide(layers, path, directory),
    async enter(directory, names) {
      const above = names.has(".git") ? [] : layers
      const relevant = names.has(".git") || ignoreFiles.some((file) => names.has(file))
      const layer = relevant ? await readLayer(directory) : undefined
      return createRules(layer ? [layer, ...above] : above)
    },
  }
}

function decide(layers: readonly Layer[], path: string, directory: boolean): boolean {
  for (const layer of layers) {
    const way = relative(layer.directory, path).split(sep).join("/")
    const { ignored, unignored } = layer.matcher.test(directory ? `${way}/` : way)
    if (ignored) return true
    if (unignored) return false
  }
  return false
}

async function readLayer(directory: string): Promise<Layer | undefined> {
  const texts: string[] = []
  for (const file of ignoreFiles) {
    const text = await readIfPresent(join(directory, file))
    if (text !== undefined) texts.push(text)
  }
  if (texts.length === 0) return undefined
  return { directory, matcher: ignore({ ignorecase: false }).add(texts.join("\n")) }
}

/** A file `.git` is the mark of a linked worktree or a submodule. */
function isRepository(directory: string): boolean {
  return existsSync(join(directory, ".git"))
}

/** An ignore file that is missing, or cannot be read, excludes nothing. */
async function readIfPresent(path: string): Promise<string | undefined> {
  // Most are missing, in every directory up to the root: a way through the thread pool for each would add up.
  if (!existsSync(path)) return undefined
  try {
    return await readFile(path, "utf8")
  } catch (error) {
    if (systemCode(error) === undefined) throw error
    return undefined
  }
}

/** Directories of generated files. `list` and scans skip them even if no ignore file names them. */
export const heavyDirectories: ReadonlySet<string> = new Set([
  ".cache",
  ".git",
  ".gradle",
  ".hg",
  ".idea",
  ".mypy_cache",
  ".next",
  ".nuxt",
  ".pytest_cache",
  ".ruff_cache",
  ".svn",
  ".terraform",
  ".tox",
  ".turbo",
  ".venv",
  "__pycache__",
  "bower_components",
  "build",
  "coverage",
  "dist",
  "node_modules",
  "target",
  "vendor",
  "venv",
])
