import { basename, dirname } from "node:path"
import picomatch from "picomatch"
import { resolvePath } from "../../util/paths.ts"

/**
 * Compiles a glob to a function that tests paths relative to the searched directory. `*` matches within a name, and
 * `**` matches across directories. Supports `{a,b}` and `[a-z]`. Also matches hidden names. A pattern without `/`
 * matches names at any depth. A leading `/` anchors the pattern to the searched directory, and a trailing `/` matches
 * everything below. Brackets and parentheses also match literally, for paths such as `app/[id]/(group)`.
 */
export function compileGlob(glob: string): (path: string) => boolean {
  const anchored = glob.startsWith("/") || glob.startsWith("./")
  let pattern = glob.replace(/^\.?\/+/, "").replace(/\/$/, "/**")
  // Removes braces around a single word. Most matchers treat them literally, but the pattern means only the word.
  pattern = pattern.replace(/\{([^{},.]+)\}/g, "$1")
  const literal = pattern.replace(/[()[\]]/g, "\\$&")
  const matches = picomatch(literal === pattern ? pattern : [pattern, literal], {
    dot: true,
    flags: "s",
    basename: !anchored && !pattern.includes("/"),
  })
  return (path) => matches(path)
}

/**
 * Splits a pattern that starts with `/`, `..` or `~` (`/etc/*.conf`, `../lib/**`, `~/x/*`) into the directory that it
 * specifies and a pattern anchored to that directory. Returns other patterns unchanged, with the given directory.
 */
export function anchorGlob(glob: string, directory: string): { directory: string; glob: string } {
  if (!/^(\/|\.\.(\/|$)|~(\/|$))/.test(glob)) return { directory, glob }
  const { base, glob: rest } = picomatch.scan(glob)
  const named = resolvePath(base, directory)
  if (rest !== "") return { directory: named, glob: `/${rest}` }
  return { directory: dirname(named), glob: `/${basename(named)}` }
}

/**
 * Returns a glob that matches the file name of every path that `glob` matches, in the plain syntax of ripgrep's file
 * types. Returns undefined if this syntax cannot express such a glob. The result only speeds up the search, because
 * {@link compileGlob} decides which files match.
 */
export function nameGlob(glob: string): string | undefined {
  const name = glob.slice(glob.lastIndexOf("/") + 1)
  const plain = /^(?:[\w.*?-]|\{[\w.*?-]+(?:,[\w.*?-]+)*\})+$/.test(name)
  return plain && name !== "**" ? name : undefined
}
