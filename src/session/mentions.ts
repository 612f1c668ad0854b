import { statSync } from "node:fs"
import { extname, join, posix } from "node:path"
import { walk } from "../files/walk.ts"
import { isDirectory, isFile } from "../util/file-system.ts"
import { isInside, resolvePath } from "../util/paths.ts"
import { nearNames } from "../util/similarity.ts"

/** What the person names with `@` in a prompt. */
export type Mention =
  | { kind: "file" | "directory"; name: string; path: string }
  | { kind: "resource"; name: string; server: string; uri: string }
  | { kind: "agent"; name: string }

/** More files than this are not attached: a pasted log full of names is no wish to read them all. */
const maxMentions = 20

/**
 * The words `@path` and `@"path with blanks"` that name something in the worktree, `@name` of an agent, and
 * `@server:uri` of a resource, whose server is one of those given. A path starts at the directory; it goes before an
 * agent of the same name. Punctuation behind a word, and a line number (`:12`), are no part of it. Every other word
 * with an `@`, such as an address, means nothing.
 */
export function findMentions(text: string, place: MentionPlace): Mention[] {
  const found = new Map<string, Mention>()
  for (const { names } of mentionWords(text)) {
    const known = knownOf(names, place)
    if (!known) continue
    found.set("path" in known ? known.path : `@${known.name}`, known)
    if (found.size === maxMentions) break
  }
  return [...found.values()]
}

/** What a word of a prompt can name. */
export interface MentionPlace {
  directory: string
  worktree: string
  agents: readonly string[]
  servers: readonly string[]
}

/** The words of a prompt that begin with `@` and name nothing here, as they are written, without what stands around them. */
export function unknownMentions(text: string, place: MentionPlace): string[] {
  const unknown = mentionWords(text).filter(({ names }) => knownOf(names, place) === undefined)
  return [...new Set(unknown.map(({ names }) => names.at(-1) ?? ""))]
}

/** All that begins with `@`, each with its readings, the longest first. */
function mentionWords(text: string): { names: string[] }[] {
  return [...text.matchAll(mention)].map(([, quoted, word = ""]) => ({
    names: quoted === undefined ? readings(word) : [quoted],
  }))
}

/** At the beginning, after white space, or after an opening bracket or quote. */
const mention = /(?<=^|[\s([{"'`,;:])@(?:"([^"\n]+)"|([^\s"`<>|]+))/g

function knownOf(names: readonly string[], place: MentionPlace): Mention | undefined {
  return (
    firstOf(names, (name) => findPath(name, place) ?? findAgent(name, place.agents)) ??
    findResource(names, place.servers)
  )
}

/** The word as it stands, without a line number, and with less and less of the punctuation behind it. */
function readings(word: string): string[] {
  const names: string[] = []
  for (let name = word; name !== ""; name = name.slice(0, -1)) {
    names.push(name, name.replace(/:\d+(?:-\d+)?$/, ""))
    if (!/[.,;:!?)\]}'*_]$/.test(name)) break
  }
  return names
}

function findPath(name: string, { directory, worktree }: { directory: string; worktree: string }) {
  // What is left of "@..." is no wish to see the directory; "@./" is.
  if (/^\.+$/.test(name)) return undefined
  const path = resolvePath(name, directory)
  if (!isInside(path, worktree)) return undefined
  const kind = kindOf(path)
  return kind && ({ kind, name, path } as const)
}

function findAgent(name: string, agents: readonly string[]): Mention | undefined {
  return agents.includes(name) ? { kind: "agent", name } : undefined
}

/** Whether there is such a resource only the server knows: the sentence's punctuation is taken off, no line number. */
function findResource(
  [word = "", ...others]: readonly string[],
  servers: readonly string[],
): Mention | undefined {
  const name = others.length === 0 ? word : word.replace(/[.,;:!?)\]}'*_]+$/, "")
  const server = servers.find((id) => name.startsWith(`${id}:`))
  if (server === undefined) return undefined
  const uri = name.slice(server.length + 1)
  return /^[a-z][a-z0-9+.-]*:./i.test(uri) ? { kind: "resource", name, server, uri } : undefined
}

function kindOf(path: string): "file" | "directory" | undefined {
  try {
    const found = statSync(path, { throwIfNoEntry: false })
    if (found?.isDirectory()) return "directory"
    return found?.isFile() ? "file" : undefined
  } catch {
    // A name too long, a loop of links: a word that names nothing.
    return undefined
  }
}

function firstOf<T>(names: readonly string[], find: (name: string) => T | undefined): T | undefined {
  for (const name of names) {
    const found = find(name)
    if (found !== undefined) return found
  }
  return undefined
}

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
