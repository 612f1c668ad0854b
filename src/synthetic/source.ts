/**
 * A growing text with a read position. Readers are generators. Each `yield` waits for more text, so that the result
 * never depends on how the text is split into pieces.
 */
export interface Source {
  text: string
  /** Offset of the first unread character. */
  position: number
  /** True if no more text will come. */
  ended: boolean
  /** True if the answer reached its token limit. Open values are then incomplete. */
  cut: boolean
  /**
   * The latest piece and some text before it. If possible, `slice` reads from this string instead of from the whole
   * text.
   */
  recent: string
  /** Offset of `recent` in the text. */
  recentAt: number
  /** Number of scans that reached the end without a closing bracket. Each such scan may read the whole text. */
  unclosed: number
}

/** Number of characters that `recent` keeps before the latest piece. Longer than any mark. */
const overlap = 64

/** Creates an empty source. */
export function createSource(): Source {
  return { text: "", position: 0, ended: false, cut: false, recent: "", recentAt: 0, unclosed: 0 }
}

/** Appends a piece of text. */
export function grow(source: Source, piece: string): void {
  source.text += piece
  source.recent = source.recent.slice(-overlap) + piece
  source.recentAt = source.text.length - source.recent.length
}

/** Discards the text before the read position. */
export function forget(source: Source): void {
  source.text = source.text.slice(source.position)
  source.recentAt -= source.position
  source.position = 0
}

/**
 * Returns `text.slice(from, to)`. Slicing a string that was built from pieces copies the whole string, so this function
 * reads from the latest piece if possible.
 */
export function slice({ text, recent, recentAt }: Source, from: number, to = text.length): string {
  return from >= recentAt ? recent.slice(from - recentAt, Math.max(0, to - recentAt)) : text.slice(from, to)
}

/** A reader that may wait for more text. */
export type Reading<T> = Generator<void, T, void>

/** Returns the character at the position plus `offset`, or an empty string after the end of the text. */
export function* charAt(source: Source, offset = 0): Reading<string> {
  while (source.position + offset >= source.text.length) {
    if (source.ended) return ""
    yield
  }
  return slice(source, source.position + offset, source.position + offset + 1)
}

/** Returns true if the literal comes next. Waits only while a match is possible. */
export function* sees(source: Source, literal: string): Reading<boolean> {
  for (;;) {
    const there = slice(source, source.position, source.position + literal.length)
    if (there === literal) return true
    if (source.ended || !literal.startsWith(there)) return false
    yield
  }
}

/** Reads the literal if it comes next. Returns true if it was read. */
export function* takes(source: Source, literal: string): Reading<boolean> {
  const seen = yield* sees(source, literal)
  if (seen) source.position += literal.length
  return seen
}

/** Reads the literals in order, each with the white space before it. Skips missing literals. */
export function* takeAll(source: Source, literals: readonly string[]): Reading<void> {
  for (const literal of literals) {
    const start = source.position
    yield* skipSpace(source)
    if (!(yield* takes(source, literal))) source.position = start
  }
}

/** Reads white space. */
export function* skipSpace(source: Source): Reading<void> {
  yield* takeWhile(source, /\s*/y)
}

/** Reads the text that the sticky pattern matches. Every prefix of a match must also match. */
export function* takeWhile(source: Source, pattern: RegExp): Reading<string> {
  for (;;) {
    pattern.lastIndex = source.position
    const matched = pattern.exec(source.text)?.[0] ?? ""
    const end = source.position + matched.length
    if (end < source.text.length || source.ended) {
      source.position = end
      return matched
    }
    yield
  }
}

/**
 * Reads up to the end of the literal and returns the text before it. If the literal never comes, returns undefined and
 * reads nothing. `onProgress` receives the end of the text that is certainly before the literal.
 */
export function* takeUntil(
  source: Source,
  literal: string,
  onProgress?: (upTo: number) => void,
): Reading<string | undefined> {
  const found = yield* findAny(source, [literal], source.position, onProgress)
  if (found === undefined) return undefined
  const before = source.text.slice(source.position, found.at)
  source.position = found.at + literal.length
  return before
}

/**
 * Finds the first of the literals after an offset. Does not move the position. `onProgress` receives the end of the
 * text that is certainly before the first literal.
 */
export function* findAny(
  source: Source,
  literals: readonly string[],
  from: number,
  onProgress?: (upTo: number) => void,
): Reading<{ literal: string; at: number } | undefined> {
  for (let searched = from; ; ) {
    const unsearched = slice(source, searched)
    const found = literals
      .map((literal) => ({ literal, at: unsearched.indexOf(literal) }))
      .filter(({ at }) => at >= 0)
      .sort((a, b) => a.at - b.at || b.literal.length - a.literal.length)[0]
    const may = Math.min(...literals.map((literal) => beginningOf(literal, unsearched)))
    // Waits if a longer literal may have begun at or before this position, because the longer literal takes precedence.
    if (found !== undefined && (found.at < may || source.ended))
      return { literal: found.literal, at: searched + found.at }
    if (source.ended) return undefined
    searched += Math.min(may, found?.at ?? may)
    onProgress?.(searched)
    yield
  }
}

/** Returns the offset at which the end of the text may be the beginning of the literal, or the length of the text. */
function beginningOf(literal: string, text: string): number {
  for (let at = Math.max(0, text.length - literal.length + 1); at < text.length; at++) {
    if (literal.startsWith(text.slice(at))) return at
  }
  return text.length
}
