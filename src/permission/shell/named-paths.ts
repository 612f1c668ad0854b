import { glob } from "node:fs/promises"
import { isAbsolute } from "node:path"
import { expandWord } from "./command-forms.ts"
import { findProgram } from "./program-table.ts"
import type { Word } from "./words.ts"

/** Returns the word and those parts of it that may be a path, such as the value of an option. */
export function candidates(word: Word, home: string): string[] {
  const text = word.base === "directory" ? `.${word.tail ?? ""}` : expandWord(word, home)
  if (text === "" || text === "-" || text === "--") return []
  const found = text.startsWith("-") ? [] : [text]
  const equals = text.indexOf("=")
  if (equals !== -1) found.push(text.slice(equals + 1))
  if (/^-[^-]/.test(text) && equals === -1) {
    const attached = text.slice(2)
    if (looksLikePath(attached)) found.push(attached)
    // Matches a path after a bundle of options, such as `curl -sT.env`.
    if (/^[A-Za-z]+\./.test(attached)) found.push(attached.slice(attached.indexOf(".")))
    if (attached.includes("/")) found.push(text.slice(text.indexOf("/")))
  }
  const address = /^file:(?:\/\/[^/]*)?(\/.*)$/is.exec(text)?.[1]
  if (address !== undefined) found.push(address)
  // In `name=@file`, `from:to` or `type=bind,src=path`, any part between the separators may be a path.
  else if (!text.includes("://") && /[:@,=]/.test(text)) {
    const parts = text.split(/[=:,@]+/)
    found.push(
      ...parts.slice(text.startsWith("-") ? 1 : 0),
      ...parts.slice(1).map((_, at) => tailAfter(text, at)),
    )
  }
  return found
    .filter((part) => part !== "" && isPossibleName(part))
    .map((part) => (part === "~" || part.startsWith("~/") ? `${home}${part.slice(1)}` : part))
}

/**
 * Returns the text after the separator with this index. The text may contain other separators, because file names can
 * contain them.
 */
function tailAfter(text: string, number: number): string {
  const mark = [...text.matchAll(/[=:,@]+/g)][number]
  return mark ? text.slice(mark.index + mark[0].length) : ""
}

/**
 * Returns false for a text that is longer than a path can be (PATH_MAX on Linux) or contains a name longer than
 * NAME_MAX.
 */
export function isPossibleName(text: string): boolean {
  return text.length <= 4_096 && text.split("/").every((segment) => Buffer.byteLength(segment) <= 255)
}

/** Returns the directory in which a glob starts. Returns undefined if `..` follows the first wildcard. */
export function globDirectory(text: string): string | undefined {
  const at = text.search(/[*?[]/)
  if (text.slice(at).split("/").includes("..")) return undefined
  const slash = text.lastIndexOf("/", at)
  return slash === -1 ? "." : text.slice(0, slash) || "/"
}

/**
 * Returns the absolute paths that a text may name. Does not resolve `..`. Returns undefined for a relative path if the
 * directories are unknown.
 */
export function absolutePaths(
  text: string,
  word: Word,
  directories: readonly string[] | undefined,
): string[] | undefined {
  const own = word.base === "directory" ? `.${word.tail ?? ""}` : text.replace(ownDirectory, "./")
  if (isAbsolute(own)) return [own]
  return directories?.map((directory) => `${directory}/${own}`)
}

/** Matches the working directory of a process under `/proc`, which is different for the command and the engine. */
const ownDirectory =
  /^\/+(?:\.\/+)*proc\/+(?:\.\/+)*(?:thread-)?self\/+(?:\.\/+)*(?:task\/+\d+\/+)?cwd(?:\/+|$)/

/** Returns true for a text that usually names a file, whether the file exists or not. */
export function looksLikePath(text: string): boolean {
  return text.includes("/") || text.startsWith(".")
}

/** Returns the words of a command without prose and scripts, which may look like paths. */
export function withoutTextWords(name: string, words: readonly Word[]): readonly Word[] {
  return withoutScript(name, withoutTexts(name, words))
}

function withoutTexts(name: string, words: readonly Word[]): readonly Word[] {
  const options = findProgram(name)?.texts?.split(" ")
  if (!options) return words
  return words.filter((_, index) => !options.includes(words[index - 1]?.text ?? ""))
}

/** Removes the script of a program such as `sed` or `awk`, which may look like a path. */
function withoutScript(name: string, words: readonly Word[]): readonly Word[] {
  if (!findProgram(name)?.script) return words
  const given = words.some((word) => /^-(?:-expression|-source|-file|[A-Za-z]*[ef])/.test(word.text))
  const isScript = ({ text }: Word, index: number) =>
    !text.startsWith("-") && !/^-[vF]$/.test(words[index - 1]?.text ?? "")
  const first = given ? undefined : words.find(isScript)
  // A word that may expand to several words can contain more than the script.
  const script = first?.splits || first?.glob ? undefined : first
  return words.filter(
    (word, index) =>
      word !== script && !/^-(?:-expression|-source|[A-Za-z]*e)$/.test(words[index - 1]?.text ?? ""),
  )
}

/** Maximum number of matches to check individually. */
const maxMatches = 300

/**
 * Returns the files in a directory that match the glob `pattern` of a word. The paths are relative unless the glob is
 * absolute. Returns undefined if too many files match, or if the shell would split or expand a matching name. Unlike a
 * shell, includes hidden files.
 */
export async function globFiles(
  pattern: string,
  directory: string,
  { unquoted }: Word,
): Promise<string[] | undefined> {
  const found: string[] = []
  for await (const name of glob(pattern, { cwd: directory })) {
    if (found.length === maxMatches || (unquoted && /[\s*?[\]\\]/.test(name))) return undefined
    found.push(name)
  }
  return found
}
