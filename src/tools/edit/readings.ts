/** Something that a model added to both texts. The result of an edit names it. */
export type Decoration = "fence" | "line-numbers" | "blank-edges" | "entities" | EscapeForm

/** The characters with one escape too many: all, only quotes, only line ends, or only backslashes. */
type EscapeForm = "escapes" | "escaped-quotes" | "escaped-line-ends" | "doubled-backslashes"

/** One interpretation of an edit: both texts as given, or without a decoration. */
export interface Reading extends Texts {
  /** Empty for the texts as given. */
  decorations: Decoration[]
  /** The decoration can only be around whole lines, so the text does not match within a line. */
  wholeLines: boolean
}

interface Texts {
  oldString: string
  newString: string
  /** Blank lines were removed that the new text may mean to change. */
  doubtfulEdges?: boolean
}

/**
 * Returns the ways to read an edit, as given first. Each way without one decoration states the share of the bent edits in
 * the bench that only it recovers (docs/decisions/010-edit-strategies.md).
 */
export function readingsOf(
  edit: { oldString: string; newString: string },
  without?: ReadonlySet<string>,
): Reading[] {
  const { oldString, newString } = edit
  const readings: Reading[] = [{ decorations: [], wholeLines: false, oldString, newString }]
  for (const { name, remove, wholeLines = false } of removers) {
    const plain = without?.has(name) ? undefined : remove({ oldString, newString })
    if (!plain || plain.oldString.trim() === "" || plain.oldString === oldString) continue
    const isKnown = readings.some(
      (other) => other.oldString === plain.oldString && other.newString === plain.newString,
    )
    if (!isKnown) readings.push({ decorations: [name], wholeLines, ...plain })
  }
  return readings
}

/** Removes a decoration from both texts. Undefined if they do not have it. */
type Remove = (edit: Texts) => Texts | undefined

const removers: readonly { name: Decoration; remove: Remove; wholeLines?: boolean }[] = [
  /** 3.8 % */
  { name: "fence", remove: withoutFence, wholeLines: true },
  /** 5.5 % */
  { name: "line-numbers", remove: withoutLineNumbers, wholeLines: true },
  /** 5.8 % */
  { name: "blank-edges", remove: withoutBlankEdges, wholeLines: true },
  /** 2.6 %, and 14 wrong edits without it. */
  { name: "entities", remove: withoutEntities },
  /** 5.6 % for the first three forms together: each covers cases of the others. */
  { name: "escapes", remove: (edit) => withoutEscapes(edit, "escapes") },
  { name: "escaped-quotes", remove: (edit) => withoutEscapes(edit, "escaped-quotes") },
  { name: "escaped-line-ends", remove: (edit) => withoutEscapes(edit, "escaped-line-ends") },
  { name: "doubled-backslashes", remove: (edit) => withoutEscapes(edit, "doubled-backslashes") },
]

/** Returns true if the old text can be read with two different new texts. */
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
 * Returns true if the old text escapes quotes that the file does not. Escaped quotes in the new text are then
 * doubtful.
 */
export function isEscapedBeyond({ oldString, newString }: Reading, found: string): boolean {
  const count = (text: string) => text.match(/\\["'`]/g)?.length ?? 0
  return count(newString) > 0 && count(oldString) > count(found)
}

/** Returns true if the old text has fewer backslashes than the file. Added lines may then lack some, too. */
export function hasLostEscapes({ oldString }: Reading, found: string): boolean {
  const count = (text: string) => text.split("\\").length
  return count(oldString) < count(found)
}

/** Removes a Markdown fence around the old text, and around the new text if it has one. */
function withoutFence({ oldString, newString }: Texts): Texts | undefined {
  const fence = /^\s*```[\w+-]*[ \t]*\r?\n([\s\S]*?)\r?\n?[ \t]*```\s*$/
  const [old, fresh] = [fence.exec(oldString)?.[1], fence.exec(newString)?.[1]]
  if (old === undefined || old.includes("```")) return undefined
  if (fresh === undefined) return newString.includes("```") ? undefined : { oldString: old, newString }
  return fresh.includes("```") ? undefined : { oldString: old, newString: fresh }
}

/** Removes the line numbers of `read`. All old lines have ascending numbers; the new lines have numbers or none. */
function withoutLineNumbers({ oldString, newString }: Texts): Texts | undefined {
  const [old, fresh] = [unnumbered(oldString), unnumbered(newString)]
  if (!old?.isAscending) return undefined
  // Numbers with another separator belong to the text, such as keys.
  const hasSameSeparator = lineNumber.exec(oldString)?.[2] === lineNumber.exec(newString)?.[2]
  if (fresh) return hasSameSeparator ? { oldString: old.text, newString: fresh.text } : undefined
  return lineNumber.test(newString) ? undefined : { oldString: old.text, newString }
}

const lineNumber = /^[ \t]*(\d+)(→|\t|: | ?\| ?)/m

/** Returns undefined if a line has no number. An empty last line needs none. */
function unnumbered(text: string): { text: string; isAscending: boolean } | undefined {
  const lines = text.split("\n")
  const end = lines.length > 1 && lines.at(-1)?.trim() === "" ? lines.slice(-1) : []
  const found = lines
    .slice(0, lines.length - end.length)
    .map((line) => ({ line, number: lineNumber.exec(line) }))
  if (found.some(({ line, number }) => !number && !/^[ \t]*\d+(?:→|:|\t| ?\|)\r?$/.test(line)))
    return undefined
  const numbers = found.map(({ line, number }) => Number(number?.[1] ?? Number.parseInt(line, 10)))
  const bare = found.map(({ line, number }) =>
    number ? line.slice(number[0].length) : line.replace(/[^\r]/g, ""),
  )
  return {
    text: [...bare, ...end].join("\n"),
    isAscending: numbers.every((value, index) => index === 0 || value === (numbers[index - 1] ?? 0) + 1),
  }
}

/** Removes blank lines before and after the old text, and as many from the new text. */
function withoutBlankEdges({ oldString, newString }: Texts): Texts | undefined {
  const [head, tail] = [blankHead(oldString), blankTail(oldString)]
  if (head + tail === 0) return undefined
  const [newHead, newTail] = [blankHead(newString), blankTail(newString)]
  // Equal edges of both texts, or edges of the old text alone, were added by the model. Others may be part of the edit.
  const isAdded = (head === newHead && tail === newTail) || newHead + newTail === 0
  return {
    doubtfulEdges: !isAdded,
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

function withoutEntities({ oldString, newString }: Texts): Texts {
  const plain = (text: string) =>
    text.replace(/&(?:lt|gt|quot|apos|amp|#39);/g, (found) => entities.get(found) ?? found)
  return { oldString: plain(oldString), newString: plain(newString) }
}

function withoutEscapes({ oldString, newString }: Texts, form: EscapeForm): Texts | undefined {
  // JSON does not escape these. If the old text has them bare, a backslash before them belongs to the code.
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
  plain: Texts
}

/** False if the texts cannot have been escaped in this form. */
const isEscaped: Record<EscapeForm, (edit: Escaped) => boolean> = {
  // A text escaped as a whole has no bare line ends or double quotes, and no backslash that JSON does not know.
  escapes: ({ given, oldString, newString, plain }) =>
    !/(?<!\\)(?:\\\\)*"/.test(given) &&
    !/\\[^nrtbfu"\\/'`]/.test(given.replaceAll("\\\\", "")) &&
    (!given.includes("\n") || countLines(given) === countLines(plain.oldString + plain.newString)) &&
    (hasMoreThanLineEnds(oldString) || !hasMoreThanLineEnds(newString) || given.includes('\\"')) &&
    (/\\["\\]/.test(given) || keepsQuotes(plain)),
  "escaped-quotes": () => true,
  // An escaped line end within a string of the code could not be distinguished from the others.
  "escaped-line-ends": ({ given, newString, plain }) =>
    !given.includes("\n") && !hasMoreThanLineEnds(newString) && keepsQuotes(plain),
  "doubled-backslashes": () => true,
}

/** Returns true if no line end of the new text is between quotes. Such a line end would belong to the code. */
function keepsQuotes({ oldString, newString }: Texts): boolean {
  const known = new Set(oldString.split("\n"))
  // An apostrophe within a word is not a quote.
  const isEven = (line: string) =>
    [/"/, /`/, /(?<!\w)'|'(?!\w)/].every((sign) => line.split(sign).length % 2 === 1)
  const isQuoted = /['"`]\n+['"`]/
  return (
    newString.split("\n").every((line) => known.has(line) || isEven(line)) &&
    (!isQuoted.test(newString) || isQuoted.test(oldString))
  )
}

/** Returns true if the text has other backslashes than `\n`. If not, it does not show whether they would be escaped. */
function hasMoreThanLineEnds(text: string): boolean {
  return text.replaceAll("\\n", "").includes("\\")
}

function countLines(text: string): number {
  return text.split("\n").length
}

const meanings = new Map([
  ["n", "\n"],
  ["r", "\r"],
  ["t", "\t"],
  ["\\", "\\"],
  ['"', '"'],
  ["'", "'"],
  ["`", "`"],
])

const escapes: Record<EscapeForm, RegExp> = {
  escapes: /\\([nrt\\"'`])/g,
  "escaped-quotes": /\\(["'`])/g,
  "escaped-line-ends": /\\(n)/g,
  "doubled-backslashes": /\\(\\)/g,
}

/** Removes one level of escapes, except those of the `literal` characters. */
function unescapeText(text: string, form: EscapeForm, literal: readonly string[] = []): string {
  return text.replace(escapes[form], (found, character: string) =>
    literal.includes(character) ? found : (meanings.get(character) ?? found),
  )
}
