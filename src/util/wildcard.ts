/**
 * Returns true if the pattern matches the whole text. `*` matches any number of characters, including `/` and line
 * breaks. `?` matches exactly one character. All other characters match themselves, case-sensitively. A trailing ` *`
 * also matches nothing, so `ls *` matches `ls`. Does not backtrack over earlier stars, so hostile texts and patterns do
 * not slow down the match.
 */
export function wildcardMatch(text: string, pattern: string): boolean {
  return matchPieces(text, pattern) || (pattern.endsWith(" *") && matchPieces(text, pattern.slice(0, -2)))
}

/** Returns true if `wide` matches every text that `narrow` matches. May wrongly return false in complicated cases. */
export function wildcardCovers(wide: string, narrow: string): boolean {
  if (!narrow.includes("*")) return wildcardMatch(narrow, wide)
  // The stars of `wide` cover a star of `narrow` if `wide` still matches when the star is replaced with an empty string
  // and with an unusual string.
  const samples = standIns.map((run) => narrow.replaceAll("*", run))
  if (narrow.endsWith(" *")) samples.push(...standIns.map((run) => narrow.slice(0, -2).replaceAll("*", run)))
  return samples.every((sample) => wildcardMatch(sample, wide))
}

/** Returns true if some text matches both patterns. Also returns true if the check would take too long. */
export function wildcardOverlap(a: string, b: string): boolean {
  const forms = [a, b].map((pattern) =>
    pattern.endsWith(" *") ? [pattern, pattern.slice(0, -2)] : [pattern],
  )
  return (forms[0] ?? []).some((left) => (forms[1] ?? []).some((right) => overlapPieces(left, right)))
}

const standIns = ["", "\u0000".repeat(7)]

/**
 * Maximum number of steps in {@link wildcardOverlap}, which take about 0.1 s. Beyond this limit, the function returns
 * true.
 */
const maxOverlapSteps = 20_000_000

/**
 * Returns true if the pattern matches the whole text. Finds each piece between stars as far left as possible. The first
 * and last pieces are anchored. They are compared before any substring is created, because most patterns fail at their
 * first characters.
 */
function matchPieces(text: string, pattern: string): boolean {
  const firstStar = pattern.indexOf("*")
  if (firstStar === -1)
    return text.length === pattern.length && matchesAt(text, 0, pattern, 0, pattern.length)
  const lastStar = pattern.lastIndexOf("*")
  const end = text.length - (pattern.length - lastStar - 1)
  if (end < firstStar || !matchesAt(text, 0, pattern, 0, firstStar)) return false
  if (!matchesAt(text, end, pattern, lastStar + 1, pattern.length)) return false

  let position = firstStar
  for (let star = firstStar; star < lastStar; ) {
    const next = pattern.indexOf("*", star + 1)
    const piece = pattern.slice(star + 1, next)
    const found = findPiece(text, piece, position)
    if (found === -1 || found + piece.length > end) return false
    position = found + piece.length
    star = next
  }
  return true
}

function findPiece(text: string, piece: string, from: number): number {
  if (!piece.includes("?")) return text.indexOf(piece, from)
  for (let at = from; at + piece.length <= text.length; at++)
    if (matchesAt(text, at, piece, 0, piece.length)) return at
  return -1
}

/** Returns true if the pattern from `start` to `end`, which contains no star, matches the text at `at`. */
function matchesAt(text: string, at: number, pattern: string, start: number, end: number): boolean {
  for (let index = start; index < end; index++) {
    const expected = pattern.charCodeAt(index)
    if (expected !== questionMark && expected !== text.charCodeAt(at + index - start)) return false
  }
  return true
}

const questionMark = "?".charCodeAt(0)

/** Returns false if the patterns differ before their first star or after their last star. */
function agree(a: string, b: string): boolean {
  const same = (left: string | undefined, right: string | undefined) =>
    left === right || left === "?" || right === "?"
  const fixed = Math.min(...[a, b].map((text) => (text.includes("*") ? text.indexOf("*") : text.length)))
  for (let index = 0; index < fixed; index++) if (!same(a[index], b[index])) return false
  for (let index = 1; a.at(-index) !== "*" && b.at(-index) !== "*"; index++) {
    if (index > a.length || index > b.length) break
    if (!same(a.at(-index), b.at(-index))) return false
  }
  return true
}

/**
 * Returns true if some text matches both patterns. Compares the patterns from their ends: `row[j]` is true if the end
 * of `a` from `i` and the end of `b` from `j` overlap.
 */
function overlapPieces(a: string, b: string): boolean {
  if (!agree(a, b)) return false
  if (a.length * b.length > maxOverlapSteps) return true
  let below: boolean[] = []
  for (let i = a.length; i >= 0; i--) {
    const row: boolean[] = []
    for (let j = b.length; j >= 0; j--) {
      const [left, right] = [a[i], b[j]]
      if (left === undefined && right === undefined) row[j] = true
      else if (left === "*") row[j] = below[j] === true || row[j + 1] === true
      else if (right === "*") row[j] = row[j + 1] === true || below[j] === true
      else if (left === undefined || right === undefined) row[j] = false
      else row[j] = (left === right || left === "?" || right === "?") && below[j + 1] === true
    }
    below = row
  }
  return below[0] === true
}
