import { extname, join, posix } from "node:path"
import { walk } from "../files/walk.ts"
import { isDirectory, isFile } from "../util/file-system.ts"
import { isInside, resolvePath } from "../util/paths.ts"
import { nearNames } from "../util/similarity.ts"
import { type MentionPlace, unknownMentions } from "./mentions.ts"

/** A word with `@` that is meant as a path and names no file. */
export interface MissingMention {
  name: string
  /** There is such a file, but outside of the worktree: it is not attached. */
  outside: boolean
  /** Paths from the directory that may have been meant, the likest first. */
  near: string[]
}

/** As many paths of a project are looked through: the word may be none at all. */
const maxPaths = 5000

/** As many suggestions as help. */
const maxNear = 3

/**
 * The words with `@` in a prompt that are meant as paths and name nothing. An address, a decorator, the name of a package
 * (`@scope/name`) or a person is none: a word is meant as a path where it begins with `./`, `../` or `~/`, where its first
 * directory exists, where it ends as files of the project do (`.ts`), or where a path of the project is much like it.
 */
export async function missingMentions(
  text: string,
  place: MentionPlace,
  signal: AbortSignal,
): Promise<MissingMention[]> {
  const { directory, worktree } = place
  const words = unknownMentions(text, place).filter(mayBePath)
  if (words.length === 0) return []
  const paths = await pathsBelow(directory, signal)
  const endings = new Set(paths.map(extname).filter((ending) => /^\.[a-z]\w*$/i.test(ending)))
  return words.flatMap((name): MissingMention[] => {
    const path = resolvePath(name, directory)
    if (!isInside(path, worktree) && (isFile(path) || isDirectory(path)))
      return [{ name, outside: true, near: [] }]
    const near = pathsLike(name, paths)
    const [first = ""] = name.split("/")
    const meant =
      /^(?:\.\.?|~)\//.test(name) ||
      (name.includes("/") && isDirectory(join(directory, first))) ||
      (endings.has(extname(name)) && !isPackage(name)) ||
      near.length > 0
    return meant ? [{ name, outside: false, near }] : []
  })
}

/** Not without a slash or an ending, nor with the signs of addresses, versions and calls. */
function mayBePath(word: string): boolean {
  return /[/.]/.test(word) && !/[@:()=?&#\\]/.test(word) && !/^[/.]*$/.test(word)
}

/** A package's name, or a module in it: nothing of that name is a directory here. */
function isPackage(name: string): boolean {
  return /^[a-z\d][\w.~-]*\/[\w.~/-]+$/.test(name)
}

async function pathsBelow(directory: string, signal: AbortSignal): Promise<string[]> {
  const paths: string[] = []
  for await (const { path } of walk(directory, { signal, onUnreadable: () => {} })) {
    paths.push(path)
    if (paths.length === maxPaths) break
  }
  return paths
}

/** Those few edits away, and files of the same name in other directories. */
function pathsLike(name: string, paths: readonly string[]): string[] {
  const wanted = posix.normalize(name).replace(/\/$/, "")
  const base = posix.basename(wanted)
  const elsewhere = extname(base) === "" ? [] : paths.filter((path) => posix.basename(path) === base)
  const spelt = nearNames(wanted, paths, Math.min(3, Math.ceil(wanted.length / 6)))
  return [...new Set([...spelt, ...elsewhere])].slice(0, maxNear)
}
