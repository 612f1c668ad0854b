import { existsSync } from "node:fs"
import { isAbsolute, join, resolve } from "node:path"
import { isDirectory } from "../../util/file-system.ts"
import { wildcardMatch } from "../../util/wildcard.ts"
import type { Listing } from "../path-checks.ts"
import { expandWord } from "./command-forms.ts"
import { listDirectory, withoutSpan } from "./directory-files.ts"
import { findProgram } from "./program-table.ts"
import type { Word } from "./words.ts"

/**
 * Returns the word, unless it is an option, and the parts of the word that may be a path, such as the value of an
 * option.
 */
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
    found.push(...parts.slice(text.startsWith("-") ? 1 : 0), ...tailsAfterSeparators(text))
  }
  return found
    .filter((part) => part !== "" && isPossibleName(part))
    .map((part) => (part === "~" || part.startsWith("~/") ? `${home}${part.slice(1)}` : part))
}

/**
 * Returns the text after each separator. The text may contain further separators, because file names can contain them.
 * Omits texts that are longer than a path can be.
 */
function tailsAfterSeparators(text: string): string[] {
  const starts = [...text.matchAll(/[=:,@]+/g)].map(({ index, 0: mark }) => index + mark.length)
  return starts.filter((start) => text.length - start <= maxPathLength).map((start) => text.slice(start))
}

/** Maximum length of a path (PATH_MAX on Linux). */
const maxPathLength = 4_096

/**
 * Returns false for text that is longer than a path can be (PATH_MAX on Linux) or contains a name longer than NAME_MAX.
 */
export function isPossibleName(text: string): boolean {
  return text.length <= maxPathLength && text.split("/").every((segment) => Buffer.byteLength(segment) <= 255)
}

/** Returns the directory in which a glob starts, or undefined if `..` follows the first wildcard. */
export function globDirectory(text: string): string | undefined {
  const at = text.search(/[*?[]/)
  if (text.slice(at).split("/").includes("..")) return undefined
  const slash = text.lastIndexOf("/", at)
  return slash === -1 ? "." : text.slice(0, slash) || "/"
}

/**
 * Returns the absolute paths that the text may name. Does not resolve `..`. Returns undefined for a relative path if
 * the directories are unknown.
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

/**
 * Matches `/proc/self/cwd`, the path of the working directory of the process itself. This directory is different for
 * the command and the engine.
 */
const ownDirectory =
  /^\/+(?:\.\/+)*proc\/+(?:\.\/+)*(?:thread-)?self\/+(?:\.\/+)*(?:task\/+\d+\/+)?cwd(?:\/+|$)/

/** Returns true for text that usually names a file, whether the file exists or not. */
export function looksLikePath(text: string): boolean {
  return text.includes("/") || text.startsWith(".")
}

/** Returns the words of a command without prose and scripts, because prose and scripts may look like paths. */
export function withoutTextWords(name: string, words: readonly Word[]): readonly Word[] {
  return withoutScript(name, withoutTexts(name, words))
}

function withoutTexts(name: string, words: readonly Word[]): readonly Word[] {
  const options = findProgram(name)?.texts?.split(" ")
  if (!options) return words
  return words.filter((_, index) => !options.includes(words[index - 1]?.text ?? ""))
}

/** Removes the script of a program such as `sed` or `awk`, because the script may look like a path. */
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

/** Maximum number of matching files that are checked individually. */
const maxMatches = 300

/**
 * Returns the files in a directory that match the glob `pattern` of a word. The paths are relative unless the glob is
 * absolute. Returns undefined if the pattern is too long, if too many files match, if the request reaches its limit for
 * listed entries, or if the shell would split or expand a matching name. A bracket expression matches any text. As in a
 * shell, `*` does not match hidden files. `**` matches directories at any depth, because some shells expand it.
 */
export async function globFiles(
  pattern: string,
  directory: string,
  { word, listing }: { word: Word; listing: Listing },
): Promise<string[] | undefined> {
  if (pattern.length > maxPathLength) return undefined
  let found = [isAbsolute(pattern) ? "/" : ""]
  for (const segment of pattern.split("/").filter((each) => each !== "" && each !== ".")) {
    if (!/[*?[]/.test(segment)) {
      found = found.map((path) => join(path, segment))
      continue
    }
    const wide = withoutSpan(segment, "[", "]")
    const next: string[] = []
    const waiting = [...found]
    for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
      const entries = await listDirectory(resolve(directory, path), listing)
      if (!entries) return undefined
      for (const entry of entries) {
        if (entry.name.startsWith(".") && !segment.startsWith(".")) continue
        if (wide === "**" && entry.isDirectory()) waiting.push(join(path, entry.name))
        if (wildcardMatch(entry.name, wide)) next.push(join(path, entry.name))
      }
    }
    // `**` also matches if there is no directory at its position.
    found = wide === "**" ? [...found, ...next] : next
  }
  const ends = pattern.endsWith("/") ? isDirectory : existsSync
  const existing = found.filter((path) => path !== "" && ends(resolve(directory, path)))
  const expandsAgain = word.unquoted === true && existing.some((path) => /[\s*?[\]\\]/.test(path))
  return existing.length > maxMatches || expandsAgain ? undefined : existing
}
