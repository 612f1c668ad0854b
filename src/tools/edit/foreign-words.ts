/**
 * Tells lines that are only misquoted from such as are meant for another place: true if the wanted lines have a word that
 * the lines in their place lack, and the file has it somewhere. What a slip makes of a word stands nowhere; `lt` where
 * the lines say `gt` is their sibling's. Case makes no difference. `texts` and `wanted` are the same lines, one to one.
 */
export function hasForeignWord(
  texts: readonly string[],
  wanted: readonly string[],
  isInFile: (word: string) => boolean,
): boolean {
  return wanted.some((line, at) => {
    if (line === texts[at]) return false
    const own = new Set(wordsOf(texts[at] ?? ""))
    return wordsOf(line).some((word) => !own.has(word) && isInFile(word))
  })
}

/** The words of a text, in small letters. */
export function wordsOf(text: string): string[] {
  return text.toLowerCase().match(/[\p{L}\p{N}_]+/gu) ?? []
}
