import { type Change, changesBetween } from "./common-sequence.ts"
import { toPlain } from "./look-alikes.ts"

/** One line in three wordings, each without the white space around it. */
export interface Wordings {
  /** As the file has it. */
  file: string
  /** As the model took it to be. */
  old: string
  /** As the model wants it. */
  fresh: string
  /** Writes look-alikes in what is new as the file does. Undefined where it cannot be told how. */
  inFileForms(text: string): string | undefined
}

/** The line, or why there is none. */
export type MergedWords = { text: string } | { unclear: "misquoted" | "look-alikes" }

/**
 * The line of the file with the change from `old` to `fresh` made in it, word by word. What the file has otherwise than
 * `old` stays. `misquoted` where that touches what is to be changed: the change was meant for another text. Spacing and
 * look-alikes are no such difference; where they overlap with the change, it wins.
 */
export function mergeWords({ file, old, fresh, inFileForms }: Wordings): MergedWords {
  if (file === old) return textOr(inFileForms(fresh))
  const [words, fileWords, freshWords] = [wordsOf(old), wordsOf(file), wordsOf(fresh)]
  const wanted = changes(words, freshWords)
  const found = changes(words, fileWords)
  const kept: Rewording[] = []
  for (const own of found) {
    if (wanted.some((change) => isSame(change, own))) continue
    const isSoft = loosened(own.from) === loosened(own.to)
    if (
      isSoft ? wanted.some((change) => overlap(change, own)) : wanted.some((change) => touch(change, own))
    ) {
      if (!isSoft) return { unclear: "misquoted" }
      continue
    }
    kept.push(own)
  }
  const asked: Rewording[] = []
  for (const change of wanted) {
    const to = inFileForms(change.to)
    if (to === undefined) return { unclear: "look-alikes" }
    asked.push({ ...change, to })
  }
  return { text: rewritten(words, [...kept, ...asked]) }
}

function textOr(text: string | undefined): MergedWords {
  return text === undefined ? { unclear: "look-alikes" } : { text }
}

/** True if two lines differ in more than spacing and look-alikes. */
export function differInWords(a: string, b: string): boolean {
  return loosened(a) !== loosened(b)
}

/** Words `start` to `end`, not included, were one text and are another. */
interface Rewording {
  start: number
  end: number
  from: string
  to: string
}

function wordsOf(text: string): string[] {
  return text.match(/[\p{L}\p{N}_]+|\s+|[^\p{L}\p{N}_\s]/gu) ?? []
}

function changes(words: readonly string[], others: readonly string[]): Rewording[] {
  const same = (a: number, b: number) => words[a] === others[b]
  return changesBetween({ old: words.length, fresh: others.length, same }).flatMap(
    ({ old, fresh }: Change) => {
      const [from, to] = [words.slice(old.start, old.end), others.slice(fresh.start, fresh.end)]
      if (from.length !== to.length) return [{ ...old, from: from.join(""), to: to.join("") }]
      return from.map((word, at) => ({
        start: old.start + at,
        end: old.start + at + 1,
        from: word,
        to: to[at] ?? "",
      }))
    },
  )
}

function loosened(text: string): string {
  return toPlain(text).replace(/\s+/g, "")
}

function isSame(a: Rewording, b: Rewording): boolean {
  return a.start === b.start && a.end === b.end && a.to === b.to
}

function overlap(a: Rewording, b: Rewording): boolean {
  return (a.start < b.end && b.start < a.end) || (a.start === b.start && a.end === b.end)
}

function touch(a: Rewording, b: Rewording): boolean {
  return a.start <= b.end && b.start <= a.end
}

function rewritten(words: readonly string[], rewordings: readonly Rewording[]): string {
  let text = ""
  let at = 0
  for (const { start, end, to } of rewordings.toSorted((a, b) => a.start - b.start || a.end - b.end)) {
    text += words.slice(at, start).join("") + to
    at = end
  }
  return text + words.slice(at).join("")
}
