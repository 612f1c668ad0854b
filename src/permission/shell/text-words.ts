import { findProgram } from "./program-table.ts"
import type { Word } from "./words.ts"

/** The words of a command without those that are texts for people or a script, which may look like paths and are none. */
export function withoutTextWords(name: string, words: readonly Word[]): readonly Word[] {
  return withoutScript(name, withoutTexts(name, words))
}

function withoutTexts(name: string, words: readonly Word[]): readonly Word[] {
  const options = findProgram(name)?.texts?.split(" ")
  if (!options) return words
  return words.filter((_, index) => !options.includes(words[index - 1]?.text ?? ""))
}

/** The script of `sed` and `awk` looks like a path and is none. */
function withoutScript(name: string, words: readonly Word[]): readonly Word[] {
  if (!findProgram(name)?.script) return words
  const given = words.some((word) => /^-(?:-expression|-source|-file|[A-Za-z]*[ef])/.test(word.text))
  const isScript = ({ text }: Word, index: number) =>
    !text.startsWith("-") && !/^-[vF]$/.test(words[index - 1]?.text ?? "")
  const first = given ? undefined : words.find(isScript)
  // A word that may become several holds more than the script.
  const script = first?.splits || first?.glob ? undefined : first
  return words.filter(
    (word, index) =>
      word !== script && !/^-(?:-expression|-source|[A-Za-z]*e)$/.test(words[index - 1]?.text ?? ""),
  )
}
