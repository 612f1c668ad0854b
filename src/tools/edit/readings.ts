import { type EscapeForm, unescapeText } from "./unescape-text.ts"

/** What a model may have put around or into both texts, by the name that the result gives it. */
export type Decoration = "fence" | "line-numbers" | "blank-edges" | "entities" | EscapeForm

/** Both texts of an edit, without the decorations named. `wholeLines`: these cannot lie around a part of a line. */
export interface Reading {
  decorations: Decoration[]
  wholeLines: boolean
  oldString: string
  newString: string
  /** Empty lines were taken off that the new text may mean to change. */
  doubtfulEdges?: boolean
}

const aroundLines: ReadonlySet<Decoration> = new Set(["fence", "line-numbers", "blank-edges"])

/** As many decorations may lie over one another. */
const maxDecorations = 2

/** The ways to read an edit, the one with the fewest decorations first; the first is the edit as it was given. */
export function readingsOf(edit: { oldString: string; newString: string }): Reading[] {
  const readings: Reading[] = [
    { decorations: [], wholeLines: false, oldString: edit.oldString, newString: edit.newString },
  ]
  for (const reading of readings) {
    if (reading.decorations.length === maxDecorations) break
    for (const [decoration, take] of takers) {
      const plain = reading.decorations.includes(decoration) ? undefined : take(reading)
      if (!plain || plain.oldString.trim() === "" || plain.oldString === reading.oldString) continue
      if (readings.some((other) => isSame(other, plain))) continue
      readings.push({
        decorations: [...reading.decorations, decoration],
        wholeLines: reading.wholeLines || aroundLines.has(decoration),
        ...(reading.doubtfulEdges ? { doubtfulEdges: true } : {}),
        ...plain,
      })
    }
  }
  return readings
}

/** True if the old text is read to mean two new ones, or may be: which of them was meant cannot be known. */
export function isDisputed(reading: Reading, readings: readonly Reading[]): boolean {
  if (reading.doubtfulEdges) return true
  return readings.some(
    (other) =>
      other.decorations.length === reading.decorations.length &&
      other.oldString === reading.oldString &&
      other.newString !== reading.newString,
  )
}

/**
 * True if the old text escapes quotes that the place it was found at does not: those that the new text escapes may be
 * escaped once too often, or be the code's.
 */
export function isEscapedBeyond({ oldString, newString }: Reading, place: string): boolean {
  const count = (text: string) => text.match(/\\["'`]/g)?.length ?? 0
  return count(newString) > 0 && count(oldString) > count(place)
}

/** True if the old text has fewer backslashes than the place: then the new one may lack them in lines that it adds. */
export function hasLostEscapes({ oldString }: Reading, place: string): boolean {
  const count = (text: string) => text.split("\\").length
  return count(oldString) < count(place)
}

interface Strings {
  oldString: string
  newString: string
  doubtfulEdges?: boolean
}

/** Takes one decoration off both texts. Undefined where they are not decorated so. */
type Take = (edit: Strings) => Strings | undefined

const takers: [Decoration, Take][] = [
  ["fence", withoutFence],
  ["line-numbers", withoutLineNumbers],
  ["blank-edges", withoutBlankEdges],
  ["entities", withoutEntities],
  ["escapes", (edit) => withoutEscapes(edit, "escapes")],
  ["escaped-quotes", (edit) => withoutEscapes(edit, "escaped-quotes")],
  ["escaped-line-ends", (edit) => withoutEscapes(edit, "escaped-line-ends")],
  ["doubled-backslashes", (edit) => withoutEscapes(edit, "doubled-backslashes")],
]

function isSame(a: Strings, b: Strings): boolean {
  return a.oldString === b.oldString && a.newString === b.newString
}

/** A Markdown fence around the old text; around the new one too, or around none of it. */
function withoutFence({ oldString, newString }: Strings): Strings | undefined {
  const fence = /^\s*```[\w+-]*[ \t]*\r?\n([\s\S]*?)\r?\n?[ \t]*```\s*$/
  const [old, fresh] = [fence.exec(oldString)?.[1], fence.exec(newString)?.[1]]
  if (old === undefined || old.includes("```")) return undefined
  if (fresh === undefined) return newString.includes("```") ? undefined : { oldString: old, newString }
  return fresh.includes("```") ? undefined : { oldString: old, newString: fresh }
}

/** Numbers as `read` puts before lines. Every old line has one, each one more than the last; new lines all or none. */
function withoutLineNumbers({ oldString, newString }: Strings): Strings | undefined {
  const [old, fresh] = [unnumbered(oldString), unnumbered(newString)]
  if (!old || old.step === "other") return undefined
  // Numbers before another sign are the text's own, such as keys.
  const isAlike = lineNumber.exec(oldString)?.[2] === lineNumber.exec(newString)?.[2]
  if (fresh) return isAlike ? { oldString: old.text, newString: fresh.text } : undefined
  return lineNumber.test(newString) ? undefined : { oldString: old.text, newString }
}

const lineNumber = /^[ \t]*(\d+)(→|\t|: | ?\| ?)/m

/** A last line ending belongs to the line before it and has no number. */
function unnumbered(text: string): { text: string; step: "one" | "other" } | undefined {
  const lines = text.split("\n")
  const end = lines.length > 1 && lines.at(-1)?.trim() === "" ? lines.slice(-1) : []
  const found = lines
    .slice(0, lines.length - end.length)
    .map((line) => ({ line, number: lineNumber.exec(line) }))
  if (found.some(({ line, number }) => !number && !/^[ \t]*\d+(?:→|:|\t| ?\|)\r?$/.test(line)))
    return undefined
  const numbers = found.map(({ line, number }) => Number(number?.[1] ?? Number.parseInt(line, 10)))
  const isRising = numbers.every((value, index) => index === 0 || value === (numbers[index - 1] ?? 0) + 1)
  const bare = found.map(({ line, number }) =>
    number ? line.slice(number[0].length) : line.replace(/[^\r]/g, ""),
  )
  return { text: [...bare, ...end].join("\n"), step: isRising ? "one" : "other" }
}

/** Empty lines before and after the old text, and as many as the new one has of them. */
function withoutBlankEdges({ oldString, newString }: Strings): Strings | undefined {
  const [head, tail] = [blankHead(oldString), blankTail(oldString)]
  if (head + tail === 0) return undefined
  const [newHead, newTail] = [blankHead(newString), blankTail(newString)]
  // Around both texts, or the old one alone, they are the model's. All else may be about empty lines of the file.
  const isAround = (head === newHead && tail === newTail) || newHead + newTail === 0
  return {
    ...(isAround ? {} : { doubtfulEdges: true }),
    oldString: withoutEdges(oldString, head, tail),
    newString: withoutEdges(newString, Math.min(head, newHead), Math.min(tail, newTail)),
  }
}

function blankHead(text: string): number {
  return lineBreaks(text.slice(0, text.length - text.trimStart().length)).length
}

function blankTail(text: string): number {
  return lineBreaks(text.slice(text.trimEnd().length)).length
}

function withoutEdges(text: string, head: number, tail: number): string {
  const breaks = lineBreaks(text)
  const [first, last] = [breaks[head - 1], breaks[breaks.length - tail]]
  return text.slice(first ? first.index + first[0].length : 0, last?.index ?? text.length)
}

function lineBreaks(text: string): RegExpExecArray[] {
  return [...text.matchAll(/\r\n|[\n\r]/g)]
}

const entities = new Map([
  ["&lt;", "<"],
  ["&gt;", ">"],
  ["&quot;", '"'],
  ["&#39;", "'"],
  ["&apos;", "'"],
  ["&amp;", "&"],
])

function withoutEntities({ oldString, newString }: Strings): Strings {
  const plain = (text: string) =>
    text.replace(/&(?:lt|gt|quot|apos|amp|#39);/g, (found) => entities.get(found) ?? found)
  return { oldString: plain(oldString), newString: plain(newString) }
}

function withoutEscapes({ oldString, newString }: Strings, form: EscapeForm): Strings | undefined {
  // JSON escapes neither: where the old text has them bare, a backslash before them is the code's; where it has none
  // at all, nobody knows.
  const literal = ["'", "`"].filter((sign) => !oldString.includes(`\\${sign}`))
  const isUnknown = literal.some((sign) => !oldString.includes(sign) && newString.includes(`\\${sign}`))
  if (isUnknown && (form === "escapes" || form === "escaped-quotes")) return undefined
  const plain = {
    oldString: unescapeText(oldString, form),
    newString: unescapeText(newString, form, literal),
  }
  return isEscaped[form]({ given: oldString + newString, oldString, newString, plain }) ? plain : undefined
}

interface Escaped {
  /** Both texts together. */
  given: string
  oldString: string
  newString: string
  plain: Strings
}

/** What speaks against a text having been escaped in this form. */
const isEscaped: Record<EscapeForm, (edit: Escaped) => boolean> = {
  // A text escaped as a whole has neither line ends nor double quotes of its own, nor a backslash that JSON does not know.
  escapes: ({ given, oldString, newString, plain }) =>
    !/(?<!\\)(?:\\\\)*"/.test(given) &&
    !/\\[^nrtbfu"\\/'`]/.test(given.replaceAll("\\\\", "")) &&
    (!given.includes("\n") || breaks(given) === breaks(plain.oldString + plain.newString)) &&
    (hasMoreThanBreaks(oldString) || !hasMoreThanBreaks(newString) || given.includes('\\"')) &&
    (/\\["\\]/.test(given) || keepsSpans(plain)),
  "escaped-quotes": () => true,
  // One that is no line end but stands in a string of the code could not be told from the others.
  "escaped-line-ends": ({ given, newString, plain }) =>
    !given.includes("\n") && !hasMoreThanBreaks(newString) && keepsSpans(plain),
  "doubled-backslashes": () => true,
}

/** True if no line end of the new text comes to stand between quotes, where it is the code's. */
function keepsSpans({ oldString, newString }: Strings): boolean {
  const known = new Set(oldString.split("\n"))
  // An apostrophe within a word is no quote.
  const isEven = (line: string) =>
    [/"/, /`/, /(?<!\w)'|'(?!\w)/].every((sign) => line.split(sign).length % 2 === 1)
  const isQuoted = /['"`]\n+['"`]/
  return (
    newString.split("\n").every((line) => known.has(line) || isEven(line)) &&
    (!isQuoted.test(newString) || isQuoted.test(oldString))
  )
}

/** True if more than line ends is escaped: else it cannot be told if the rest was. */
function hasMoreThanBreaks(text: string): boolean {
  return text.replaceAll("\\n", "").includes("\\")
}

function breaks(text: string): number {
  return text.split("\n").length
}
