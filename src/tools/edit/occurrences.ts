/** Where `needle` begins: at most `limit` places, each after the end of the one before. */
export function occurrences(text: string, needle: string, limit: number): number[] {
  const found: number[] = []
  let at = text.indexOf(needle)
  while (at !== -1 && found.length < limit) {
    found.push(at)
    at = text.indexOf(needle, at + needle.length)
  }
  return found
}

/** The same, to tell if a place is the only one: those that overlap, such as of "aa" in "aaa", count too. */
export function candidates(text: string, needle: string, limit: number): number[] {
  const found: number[] = []
  let at = text.indexOf(needle)
  while (at !== -1 && found.length < limit) {
    found.push(at)
    at = text.indexOf(needle, at + 1)
  }
  return found
}
