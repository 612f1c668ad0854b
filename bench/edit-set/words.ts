/** The line with its first word of four letters or more changed. Undefined where there is none. */
export function changeWord(text: string, ending = "ed"): string | undefined {
  const word = /[A-Za-z]\w{3,}/.exec(text)?.[0]
  return word && text.replace(word, word + ending)
}

/** The word of the old line that another one takes the place of in the new; undefined where more is changed. */
export function onlyWordChanged(old: string, fresh: string): string | undefined {
  const [a, b] = [old.split(/\b/), fresh.split(/\b/)]
  if (a.length !== b.length) return undefined
  const changed = a.filter((word, index) => word !== b[index])
  return changed.length === 1 && /^\w{3,}$/.test(changed[0] ?? "") ? changed[0] : undefined
}
