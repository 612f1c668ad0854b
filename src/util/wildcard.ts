/**
 * True if the pattern matches the whole text. `*` stands for any run of characters (also `/` and line ends), `?` for
 * one, everything else for itself, case included; a trailing ` *` also stands for nothing, so that `ls *` matches `ls`.
 * No regular expression and no backtracking over earlier stars: hostile texts and patterns cost no more than long ones.
 */
export function wildcardMatch(text: string, pattern: string): boolean {
  return matchPieces(text, pattern) || (pattern.endsWith(" *") && matchPieces(text, pattern.slice(0, -2)))
}

/** True if `wide` matches every text that `narrow` matches. May say false where that is hard to see. */
export function wildcardCovers(wide: string, narrow: string): boolean {
  if (!narrow.includes("*")) return wildcardMatch(narrow, wide)
  // A star of `narrow` is met only by stars of `wide` if both nothing and a run of foreign characters may stand there.
  const samples = standIns.map((run) => narrow.replaceAll("*", run))
  if (narrow.endsWith(" *")) samples.push(...standIns.map((run) => narrow.slice(0, -2).replaceAll("*", run)))
  return samples.every((sample) => wildcardMatch(sample, wide))
}

/** True if some text is matched by both patterns. Says true where the work would be too much to find out. */
export function wildcardOverlap(a: string, b: string): boolean {
  const forms = [a, b].map((pattern) =>
    pattern.endsWith(" *") ? [pattern, pattern.slice(0, -2)] : [pattern],
  )
  return (forms[0] ?? []).some((left) => (forms[1] ?? []).some((right) => overlapPieces(left, right)))
}

const standIns = ["", "\u0000".repeat(7)]

/** Above this many steps {@link wildcardOverlap} says true: about a tenth of a second. */
const maxOverlapSteps = 20_000_000

/** Each piece between stars is found as far left as possible; the first and the last are held to the ends. */
function matchPieces(text: string, pattern: string): boolean {
  const pieces = pattern.split("*")
  const first = pieces.shift() ?? ""
  const last = pieces.pop()
  if (last === undefined) return text.length === first.length && matchesAt(text, first, 0)
  if (text.length < first.length + last.length) return false
  const end = text.length - last.length
  if (!matchesAt(text, first, 0) || !matchesAt(text, last, end)) return false

  let position = first.length
  for (const piece of pieces) {
    const found = findPiece(text, piece, position)
    if (found === -1 || found + piece.length > end) return false
    position = found + piece.length
  }
  return true
}

function findPiece(text: string, piece: string, from: number): number {
  if (!piece.includes("?")) return text.indexOf(piece, from)
  for (let at = from; at + piece.length <= text.length; at++) if (matchesAt(text, piece, at)) return at
  return -1
}

function matchesAt(text: string, piece: string, at: number): boolean {
  if (!piece.includes("?")) return text.startsWith(piece, at)
  for (let index = 0; index < piece.length; index++) {
    if (piece[index] !== "?" && piece[index] !== text[at + index]) return false
  }
  return true
}

/** Walks both patterns from their ends; `row[j]` tells whether the rests from here and from `b[j]` meet. */
function overlapPieces(a: string, b: string): boolean {
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
