/**
 * Maximum length in characters. Longer texts count as equal or completely different, because a detailed comparison
 * takes too long.
 */
const maxLength = 1_000

/**
 * Returns the minimum number of characters to insert, delete or replace to turn `a` into `b`. Takes time proportional
 * to the product of the lengths. Returns the longer length for different texts over 1,000 characters.
 */
export function editDistance(a: string, b: string): number {
  if (a === b) return 0
  if (Math.max(a.length, b.length) > maxLength) return Math.max(a.length, b.length)
  let above = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let row = 1; row <= a.length; row++) {
    const current = [row]
    for (let column = 1; column <= b.length; column++) {
      const [corner = 0, top = 0, left = 0] = [above[column - 1], above[column], current[column - 1]]
      const replaced = corner + (a[row - 1] === b[column - 1] ? 0 : 1)
      current.push(Math.min(replaced, top + 1, left + 1))
    }
    above = current
  }
  return above[b.length] ?? 0
}

/**
 * Maximum length in characters. Longer names are not compared: they are not typing errors, and a model can send a name
 * of any length.
 */
const maxNameLength = 200

/** Returns the names within `limit` edits of `name`, nearest first. Ignores case. */
export function nearNames(name: string, names: readonly string[], limit: number): string[] {
  if (name.length > maxNameLength) return []
  return names
    .filter((candidate) => Math.abs(candidate.length - name.length) <= limit)
    .map((candidate) => ({ candidate, edits: editDistance(name.toLowerCase(), candidate.toLowerCase()) }))
    .filter(({ edits }) => edits <= limit)
    .sort((a, b) => a.edits - b.edits)
    .map(({ candidate }) => candidate)
}

/**
 * Returns `Did you mean a or b?` with up to three names that differ from `name` in at most two characters or a third of
 * its characters, whichever is more, or undefined if no name is near enough.
 */
export function didYouMean(name: string, names: readonly string[]): string | undefined {
  const near = nearNames(name, names, Math.max(2, Math.floor(name.length / 3))).slice(0, 3)
  return near.length > 0 ? `Did you mean ${near.join(" or ")}?` : undefined
}

/** Returns the name in lower case, without `-`, `_` and spaces. Different spellings of a name have the same result. */
export function plainName(name: string): string {
  return name.toLowerCase().replaceAll(/[-_\s]/g, "")
}

/**
 * Returns the names for which `name` probably stands: names in another spelling (`file_path` for `filePath`), names that
 * contain all its words or only its words (`path`), that it abbreviates (`cmd` for `command`), or that are one or two
 * edits away. A name in another spelling is returned alone.
 */
export function aliasesOf(name: string, names: readonly string[]): string[] {
  if (name.length > maxNameLength) return []
  const spellings = names.filter((candidate) => plainName(candidate) === plainName(name))
  return spellings.length > 0 ? spellings : names.filter((candidate) => isAlias(name, candidate))
}

function isAlias(name: string, of: string): boolean {
  const [given, wanted] = [wordsOf(name), wordsOf(of)]
  if (given.length === 0 || wanted.length === 0) return false
  if (given.every((word) => wanted.includes(word)) || wanted.every((word) => given.includes(word)))
    return true
  if (given.length === wanted.length && given.every((word, index) => abbreviates(word, wanted[index] ?? "")))
    return true
  const limit = Math.min(name.length, of.length) >= 6 ? 2 : 1
  return Math.min(name.length, of.length) >= 4 && nearNames(name, [of], limit).length > 0
}

/** Splits a name in any style into words in lower case. */
export function wordsOf(name: string): string[] {
  const spaced = name.replaceAll(/([a-z0-9])([A-Z])/g, "$1 $2")
  return spaced
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .filter((word) => word !== "")
}

/**
 * Returns true if the word is the same, its singular, begins the other with at least three letters, or consists of its
 * first letter and some of its consonants in order.
 */
function abbreviates(short: string, long: string): boolean {
  if (short === long || `${short}s` === long) return true
  if (short.length < 3 || short.length >= long.length) return false
  if (long.startsWith(short)) return true
  if (short[0] !== long[0] || /[aeiou]/.test(short.slice(1))) return false
  let at = 0
  for (const letter of long) if (letter === short[at]) at += 1
  return at === short.length
}
