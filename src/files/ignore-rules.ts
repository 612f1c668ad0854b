import { existsSync } from "node:fs"
import { dirname, join, relative, sep } from "node:path"
import ignore, { type Ignore } from "ignore"
import { systemCode, TackleError } from "../util/errors.ts"
import { readRegularFile } from "../util/file-system.ts"

/** The rules that apply in one directory, from the ignore files in the directory and in its parent directories. */
export interface IgnoreRules {
  /** Returns true if an entry of the directory is ignored. Assumes that its parents are not ignored. */
  ignores(path: string, directory: boolean): boolean
  /** Returns the rules for a subdirectory. `names` are the names of its entries. */
  enter(directory: string, names: ReadonlySet<string>): Promise<IgnoreRules>
}

/** Names of ignore files in ascending precedence. The last matching rule wins. */
const ignoreFiles = [".git/info/exclude", ".gitignore", ".ignore", ".rgignore"]

interface Layer {
  directory: string
  matcher: Ignore
}

/** The rules that a directory inherits from its parents. */
export interface RulesAbove {
  rules: IgnoreRules
  /**
   * Whether the inherited rules ignore the directory or its content. If so, `rules` is empty, because the user named
   * the directory itself.
   */
  excluded: boolean
  /** True if the directory is in a git repository. */
  repository: boolean
}

/**
 * Returns the rules of the parent directories, up to the root of the git repository. Outside a repository, includes all
 * parent directories.
 */
export async function rulesAbove(directory: string): Promise<RulesAbove> {
  const layers: Layer[] = []
  let repository = isRepository(directory)
  for (let below = directory; !repository && dirname(below) !== below; below = dirname(below)) {
    const layer = readLayer(dirname(below))
    if (layer) layers.push(layer)
    repository = isRepository(dirname(below))
  }
  const excluded = decide(layers, directory, true) || decide(layers, join(directory, "any"), false)
  return { rules: createRules(excluded ? [] : layers), excluded, repository }
}

/** Creates rules from the layers of several directories, deepest first. The match in the deepest directory wins. */
function createRules(layers: readonly Layer[]): IgnoreRules {
  return {
    ignores: (path, directory) => decide(layers, path, directory),
    async enter(directory, names) {
      const above = names.has(".git") ? [] : layers
      const relevant = names.has(".git") || ignoreFiles.some((file) => names.has(file))
      const layer = relevant ? readLayer(directory) : undefined
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

function readLayer(directory: string): Layer | undefined {
  const texts: string[] = []
  for (const file of ignoreFiles) {
    const text = readIfPresent(join(directory, file))
    if (text !== undefined) texts.push(text)
  }
  if (texts.length === 0) return undefined
  return { directory, matcher: ignore({ ignorecase: false }).add(texts.join("\n")) }
}

/** Returns true for the root of a repository. `.git` is a file in linked worktrees and submodules. */
function isRepository(directory: string): boolean {
  return existsSync(join(directory, ".git"))
}

/** Maximum size of an ignore file, in bytes. */
const maxBytes = 1024 * 1024

/**
 * Returns the lines of an ignore file, or undefined if the file is missing, unreadable, too large or not a regular
 * file.
 */
function readIfPresent(path: string): string | undefined {
  // Most of these files do not exist, and a synchronous check is faster than the thread pool.
  if (!existsSync(path)) return undefined
  try {
    const lines = readRegularFile(path, maxBytes)?.toString("utf8").split("\n")
    return lines?.filter(isQuickToMatch).join("\n")
  } catch (error) {
    if (!(error instanceof TackleError) && systemCode(error) === undefined) throw error
    return undefined
  }
}

/**
 * Returns false for a line with so many wildcards that matching a long name could take minutes, because the matcher
 * backtracks.
 */
function isQuickToMatch(line: string): boolean {
  return line.split(/\*+/).length <= maxWildcards + 1
}

/** Maximum number of star groups in a line. Lines in real projects have at most four. */
const maxWildcards = 5

/**
 * Names of directories that usually contain generated files. `list` and scans skip them even if no ignore file lists
 * them.
 */
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
