/**
 * A text that is still growing, and the place up to which it was read. Readers are generators: each `yield` waits for
 * more text, so what they decide never depends on how the text was cut into pieces.
 */
export interface Source {
  text: string
  /** The first character that was not read yet. */
  position: number
  /** No more text will come. */
  ended: boolean
  /** It ended because the answer reached its limit: what stands open was not meant to end there. */
  cut: boolean
  /** The end of the text: the last piece and a little before it. Looked into instead of the text by `slice`. */
  recent: string
  /** Where `recent` begins in the text. */
  recentAt: number
  /** How many brackets were followed to the end of the text and not closed. Each such search may go over all of it. */
  unclosed: number
}

/** Longer than any mark that is looked for, in characters. */
const overlap = 64

/** A source without text. */
export function createSource(): Source {
  return { text: "", position: 0, ended: false, cut: false, recent: "", recentAt: 0, unclosed: 0 }
}

/** Puts the piece at the end. */
export function grow(source: Source, piece: string): void {
  source.text += piece
  source.recent = source.recent.slice(-overlap) + piece
  source.recentAt = source.text.length - source.recent.length
}

/** Lets go of what was read. */
export function forget(source: Source): void {
  source.text = source.text.slice(source.position)
  source.recentAt -= source.position
  source.position = 0
}

/**
 * `text.slice(from, to)`. A text that grew by pieces is copied whole when any of it is looked at; of a long call in small
 * pieces mostly the last piece matters, so this looks there first.
 */
export function slice({ text, recent, recentAt }: Source, from: number, to = text.length): string {
  return from >= recentAt ? recent.slice(from - recentAt, Math.max(0, to - recentAt)) : text.slice(from, to)
}

/** A step of reading that may have to wait for more text. */
export type Reading<T> = Generator<void, T, void>

/** The character `offset` further on; empty behind the end. */
export function* charAt(source: Source, offset = 0): Reading<string> {
  while (source.position + offset >= source.text.length) {
    if (source.ended) return ""
    yield
  }
  return slice(source, source.position + offset, source.position + offset + 1)
}

/** True where the literal comes next. Waits only as long as it still may. */
export function* sees(source: Source, literal: string): Reading<boolean> {
  for (;;) {
    const there = slice(source, source.position, source.position + literal.length)
    if (there === literal) return true
    if (source.ended || !literal.startsWith(there)) return false
    yield
  }
}

/** Reads the literal, if it comes next. */
export function* takes(source: Source, literal: string): Reading<boolean> {
  const seen = yield* sees(source, literal)
  if (seen) source.position += literal.length
  return seen
}

/** Reads the literals one after the other, with the white space before each; those that are missing are passed over. */
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

/** Reads what the sticky pattern matches. The pattern must go on matching whatever it matched so far. */
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
 * Reads up to the literal and over it, and returns what stands before it. Undefined where it never comes: then nothing
 * was read. `onProgress` is told how far the text surely stands before the literal.
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
 * Where the first of the literals comes, from a place on. Reads nothing. `onProgress` is told how far the text surely
 * stands before it.
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
    // One that may have begun there or before, and is longer, comes first.
    if (found !== undefined && (found.at < may || source.ended))
      return { literal: found.literal, at: searched + found.at }
    if (source.ended) return undefined
    searched += Math.min(may, found?.at ?? may)
    onProgress?.(searched)
    yield
  }
}

/** Where at the text's end the literal may have begun; the text's length, where it has not. */
function beginningOf(literal: string, text: string): number {
  for (let at = Math.max(0, text.length - literal.length + 1); at < text.length; at++) {
    if (literal.startsWith(text.slice(at))) return at
  }
  return text.length
}
