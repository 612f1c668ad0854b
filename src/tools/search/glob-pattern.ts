import { basename, dirname } from "node:path"
import picomatch from "picomatch"
import { resolvePath } from "../../util/paths.ts"

/**
 * Compiles a glob to a test of paths relative to the directory that is searched, with `/` between the parts. `*`
 * stays within one part, `**` crosses parts, `{a,b}` and `[a-z]` work, hidden names match like others. Without a `/`
 * the last part alone has to match, at any depth; a leading `/` ties the pattern to the searched directory, a trailing
 * one means everything below. Brackets and parentheses also match as they are written, since paths such as
 * `app/[id]/(group)` hold them.
 */
export function compileGlob(glob: string): (path: string) => boolean {
  const tied = glob.startsWith("/") || glob.startsWith("./")
  let pattern = glob.replace(/^\.?\/+/, "").replace(/\/$/, "/**")
  // A brace around a single word is literal to most matchers, but what is meant is the word.
  pattern = pattern.replace(/\{([^{},.]+)\}/g, "$1")
  const literal = pattern.replace(/[()[\]]/g, "\\$&")
  const matches = picomatch(literal === pattern ? pattern : [pattern, literal], {
    dot: true,
    flags: "s",
    basename: !tied && !pattern.includes("/"),
  })
  return (path) => matches(path)
}

/**
 * Splits a pattern that leaves the directory (`/etc/*.conf`, `../lib/**`, `~/x/*`) into the directory that it names
 * and the rest, tied to that directory. Other patterns come back with the directory as it was.
 */
export function anchorGlob(glob: string, directory: string): { directory: string; glob: string } {
  if (!/^(\/|\.\.(\/|$)|~(\/|$))/.test(glob)) return { directory, glob }
  const { base, glob: rest } = picomatch.scan(glob)
  const named = resolvePath(base, directory)
  if (rest !== "") return { directory: named, glob: `/${rest}` }
  return { directory: dirname(named), glob: `/${basename(named)}` }
}

/**
 * The part of a glob that every match's file name fits, in the plain syntax that ripgrep's file types share; undefined
 * where there is none. Only to search fewer files: {@link compileGlob} decides.
 */
export function nameGlob(glob: string): string | undefined {
  const name = glob.slice(glob.lastIndexOf("/") + 1)
  const plain = /^(?:[\w.*?-]|\{[\w.*?-]+(?:,[\w.*?-]+)*\})+$/.test(name)
  return plain && name !== "**" ? name : undefined
}
