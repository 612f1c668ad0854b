import { isSimilar } from "../../util/similarity.ts"
import { differInWords } from "./merge-words.ts"

/** Lines of the old text, what the file has for them one to one, and what takes their place; without indentation. */
export interface MisquotedChange {
  file: readonly string[]
  old: readonly string[]
  fresh: readonly string[]
  /** True if no further line of the whole old text has other words than the file: else the place may be another. */
  isOnly: boolean
  /** All lines that the new text adds, here or elsewhere: one may be the misquoted line, moved. */
  added: readonly string[]
}

/**
 * True if the new lines can stand in place of the file's though one old line has other words than the file: they have
 * the file's words where the old line is wrong, or nothing of that line stays, and a word of it tells that it is the
 * file's. Else the change may be meant for another text.
 */
export function isMeantForFile({ file, old, fresh, added, isOnly }: MisquotedChange): boolean {
  const misquoted = [...old.keys()].filter((at) => differInWords(old[at] ?? "", file[at] ?? ""))
  const [only] = misquoted
  if (only === undefined) return true
  const [own, quoted] = [file[only] ?? "", old[only] ?? ""]
  return isOnly && (hasFilesWords(own, quoted, fresh) || (sharesWord(own, quoted) && isGone(quoted, added)))
}

/** True if the new lines have each word that the file has otherwise, and none of those that it has not. */
function hasFilesWords(own: string, misquoted: string, fresh: readonly string[]): boolean {
  const [words, others, wanted] = [wordsOf(own), wordsOf(misquoted), wordsOf(fresh.join("\n"))]
  const [extra, lacking] = [without(others, words), without(words, others)]
  return (
    extra.length > 0 &&
    lacking.length > 0 &&
    lacking.every((word) => wanted.includes(word)) &&
    !extra.some((word) => wanted.includes(word))
  )
}

function sharesWord(a: string, b: string): boolean {
  const words = new Set(wordsOf(a))
  return wordsOf(b).some((word) => words.has(word))
}

function without(words: readonly string[], others: readonly string[]): string[] {
  return words.filter((word) => !others.includes(word))
}

/** True if none of the lines is this one, changed. */
function isGone(line: string, added: readonly string[]): boolean {
  const words = wordsOf(line)
  return added.every((other) => {
    const others = new Set(wordsOf(other))
    return !isSimilar(line, other) && words.filter((word) => others.has(word)).length * 2 < words.length
  })
}

function wordsOf(text: string): string[] {
  return text.match(/[\p{L}\p{N}_]+/gu) ?? []
}
