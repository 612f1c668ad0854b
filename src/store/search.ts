import type { MessageWithParts } from "../schema/message.ts"
import type { Part } from "../schema/part.ts"
import type { Session, SessionMatch } from "../schema/session.ts"
import { sessionPages } from "./session-pages.ts"
import type { ListedRow, SearchHit, SessionFilter, Store } from "./store.ts"

/** Maximum number of words in a query. Later words are ignored. */
const maxWords = 32

/** Maximum length of a word in characters. Longer words, such as encoded data, are cut. */
const maxWordLength = 64

/** Maximum number of characters that are searched in a part. */
const maxTextLength = 100_000

/**
 * Matches a word in a text: letters, digits, marks and private-use characters. A function, because compiling the
 * expression would take half a millisecond of every start.
 */
const word = () => /[\p{L}\p{N}\p{M}\p{Co}]+/gu

const isASCII = /^[\0-\x7f]*$/

/** Returns a word in lower case, without accents or compatibility forms. */
function folded(text: string): string {
  const plain = text
    .normalize("NFKD")
    .replaceAll(/[\u0300-\u036f]+/g, "")
    .toLowerCase()
  return (plain.match(word()) ?? []).join("").slice(0, maxWordLength)
}

/** Returns the words in a text in lower case and without accents, so that they can be compared. */
export function wordsOf(text: string): string[] {
  // This shortcut for ASCII texts takes a tenth of the time.
  if (isASCII.test(text))
    return (text.toLowerCase().match(/[a-z0-9]+/g) ?? []).map((each) => each.slice(0, maxWordLength))
  return (text.match(word()) ?? []).map(folded).filter((each) => each !== "")
}

/**
 * Returns the words in a query, at most {@link maxWords}. A session matches if it contains every word. The last word
 * may be the beginning of a longer word. Quotes and operators have no special meaning.
 */
export function queryWords(query: string): string[] {
  return wordsOf(query).slice(0, maxWords)
}

/**
 * Returns a part's searchable text: text from the user or the model, the name of an attached file, or the tool and
 * arguments of a call. Returns an empty string for other parts.
 */
export function searchedText(part: Part): string {
  return textOf(part).slice(0, maxTextLength)
}

function textOf(part: Part): string {
  switch (part.type) {
    case "text":
      return part.synthetic ? "" : part.text
    case "file":
      return part.filename ?? ""
    case "tool":
      return [part.tool, ...strings(part.state.input)].join("\n")
    default:
      return ""
  }
}

/** Returns all strings in a JSON value. */
function strings(value: unknown): string[] {
  if (typeof value === "string") return [value]
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(strings) : []
}

/**
 * Searches without an index. Reads all messages of the selected sessions, so use it only for small stores, and for
 * stores that cannot be written to.
 */
export function searchByReading(store: Pick<Store, "page" | "messages">): Store["search"] {
  return async (query, { limit = 100, ...filter }: SessionFilter = {}) => {
    const words = queryWords(query)
    if (words.length === 0) return []
    const hits: SearchHit[] = []
    for await (const page of sessionPages(store, filter))
      for (const listed of page) {
        // One damaged session must not prevent the search.
        const texts = textsOf(listed.session, await store.messages(listed.session.id).catch(() => []))
        const hit = bestOf(texts, words)
        if (hit) hits.push({ ...listed, ...hit })
        if (hits.length >= limit) return hits
      }
    return hits
  }
}

function textsOf(
  session: Session,
  messages: readonly MessageWithParts[],
): Omit<SearchHit, keyof ListedRow>[] {
  return [
    { text: session.title },
    ...messages.flatMap(({ message, parts }) =>
      parts.map((part) => ({ messageID: message.id, role: message.role, text: searchedText(part) })),
    ),
  ]
}

/**
 * Returns the first text that contains all words. If no text does, returns the first text that contains the first word.
 * Returns undefined if any of the words occurs in none of the texts.
 */
function bestOf<T extends { text: string }>(texts: readonly T[], words: readonly string[]): T | undefined {
  const found = texts.map(({ text }) => matched(text, words))
  if (!words.every((_, index) => found.some((set) => set.has(index)))) return undefined
  const whole = found.findIndex((set) => set.size === words.length)
  return texts[whole >= 0 ? whole : found.findIndex((set) => set.has(0))]
}

/** Returns the indexes of the words that occur in a text. */
function matched(text: string, words: readonly string[]): Set<number> {
  const found = new Set<number>()
  for (const each of wordsOf(text)) for (const index of matches(each, words)) found.add(index)
  return found
}

/** Returns the indexes of the query words that match one word of a text. */
function matches(each: string, words: readonly string[]): number[] {
  return words.flatMap((wanted, index) =>
    each === wanted || (index === words.length - 1 && each.startsWith(wanted)) ? [index] : [],
  )
}

/** Converts a search hit to the match that a session list shows. */
export function matchOf({ text, messageID, role }: SearchHit, query: string): SessionMatch {
  return { ...excerptOf(text, query), ...(messageID !== undefined && { messageID, role }) }
}

/** Maximum number of characters before the first matching word in an excerpt. */
const leadLength = 50
const excerptLength = 160

/**
 * Returns an excerpt of a text around the first match of a query, and the positions of the matches in the excerpt.
 * Without a match, the excerpt is the beginning of the text.
 */
export function excerptOf(text: string, query: string): Pick<SessionMatch, "excerpt" | "marks"> {
  const words = queryWords(query)
  const found = [...text.matchAll(word())]
    .filter(([each]) => matches(folded(each), words).length > 0)
    .map(({ 0: each, index }) => ({ from: index, to: index + each.length }))
  const first = found[0]?.from ?? 0
  const from = first <= leadLength ? 0 : wordStart(text, first - leadLength, first)
  const end = Math.max(from + excerptLength, found[0]?.to ?? 0)
  const to = end >= text.length ? text.length : wholeCharacter(text, end)
  const start = from > 0 ? "…" : ""
  return {
    excerpt: `${start}${text.slice(from, to).replaceAll(/\s/g, " ")}${to < text.length ? "…" : ""}`,
    marks: found
      .filter((mark) => mark.to <= to)
      .map((mark) => [mark.from - from + start.length, mark.to - from + start.length]),
  }
}

/** Returns the start of the first word after a position, or the position if no word starts before `limit`. */
function wordStart(text: string, position: number, limit: number): number {
  const space = text.slice(position, limit).search(/\s/)
  return wholeCharacter(text, space < 0 ? position : position + space + 1)
}

/** Moves a position that is inside a surrogate pair to the end of the pair. */
function wholeCharacter(text: string, position: number): number {
  return /[\udc00-\udfff]/.test(text[position] ?? "") ? position + 1 : position
}
