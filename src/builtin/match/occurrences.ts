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

/** The same, to tell if a place is the only one: a second that overlaps it, such as of "aa" in "aaa", counts too. */
export function candidates(text: string, needle: string, limit: number): number[] {
  const found = occurrences(text, needle, limit)
  const [only, ...more] = found
  if (only === undefined || more.length > 0) return found
  const overlapping = text.indexOf(needle, only + 1)
  return overlapping === -1 ? found : [only, overlapping]
}
