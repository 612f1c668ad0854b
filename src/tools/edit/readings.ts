/** A transformation that a model applied to the texts of an edit by mistake. The result of the edit reports it. */
export type Decoration = "fence" | "line-numbers" | "blank-edges" | "entities" | EscapeForm

/**
 * The characters that have an extra level of escaping: all of them, only quotes, only line endings and tabs, only line
 * endings and tabs outside string literals, or only backslashes.
 */
type EscapeForm =
  | "escapes"
  | "escaped-quotes"
  | "escaped-line-ends"
  | "escaped-line-ends-outside-strings"
  | "doubled-backslashes"

/** One interpretation of an edit: both texts as given, or without a decoration. */
export interface Reading extends Texts {
  /** Decorations that were removed from the texts. Empty if the texts are as given. */
  decorations: Decoration[]
  /** Whether the decoration can only surround whole lines. If true, the text does not match within a line. */
  wholeLines: boolean
}

interface Texts {
  oldString: string
  newString: string
  /** Whether blank lines that the edit may intend to change were removed. */
  doubtfulEdges?: boolean
}

/** Returns the readings of an edit: first the texts as given, then the texts without each decoration that they have. */
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

/** Removes a decoration from both texts. Returns undefined if the texts do not have the decoration. */
type Remove = (edit: Texts) => Texts | undefined

/**
 * Removers in the order of their readings. The percentage is the share of the inexact edits in the benchmark that only
 * this reading recovers (docs/decisions/010-edit-strategies.md).
 */
const removers: readonly { name: Decoration; remove: Remove; wholeLines?: boolean }[] = [
  /** Recovers 3.8% of the inexact edits. */
  { name: "fence", remove: withoutFence, wholeLines: true },
  /** Recovers 5.5% of the inexact edits. */
  { name: "line-numbers", remove: withoutLineNumbers, wholeLines: true },
  /** Recovers 5.8% of the inexact edits. */
  { name: "blank-edges", remove: withoutBlankEdges, wholeLines: true },
  /** Recovers 2.6% of the inexact edits. Without this reading, the benchmark also has 14 wrong edits. */
  { name: "entities", remove: withoutEntities },
  /**
   * This form and the next four are measured together, because their cases overlap. Before
   * `escaped-line-ends-outside-strings` was added, they recovered 6.9% of the inexact edits.
   */
  { name: "escapes", remove: (edit) => withoutEscapes(edit, "escapes") },
  { name: "escaped-quotes", remove: (edit) => withoutEscapes(edit, "escaped-quotes") },
  { name: "escaped-line-ends", remove: (edit) => withoutEscapes(edit, "escaped-line-ends") },
  {
    name: "escaped-line-ends-outside-strings",
    remove: (edit) => withoutEscapes(edit, "escaped-line-ends-outside-strings"),
  },
  { name: "doubled-backslashes", remove: (edit) => withoutEscapes(edit, "doubled-backslashes") },
]

/** Returns true if the same old text can mean different new texts. */
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
 * Returns true if the old text escapes more quotes than the text found in the file, and the new text escapes quotes
 * too. In this case, it is unclear which quotes of the new text should be escaped.
 */
export function isEscapedBeyond({ oldString, newString }: Reading, found: string): boolean {
  const count = (text: string) => text.match(/\\["'`]/g)?.length ?? 0
  return count(newString) > 0 && count(oldString) > count(found)
}

/**
 * Returns true if the old text has fewer backslashes than the text found in the file. In this case, added lines may
 * also lack backslashes.
 */
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

/**
 * Removes the line numbers that `read` adds. All old lines must have consecutive numbers. Either all new lines or none
 * of them must have numbers.
 */
function withoutLineNumbers({ oldString, newString }: Texts): Texts | undefined {
  const [old, fresh] = [unnumbered(oldString), unnumbered(newString)]
  if (!old?.isAscending) return undefined
  // Numbers with a different separator, such as keys, belong to the text.
  const hasSameSeparator = lineNumber.exec(oldString)?.[2] === lineNumber.exec(newString)?.[2]
  if (fresh) return hasSameSeparator ? { oldString: old.text, newString: fresh.text } : undefined
  return lineNumber.test(newString) ? undefined : { oldString: old.text, newString }
}

const lineNumber = /^[ \t]*(\d+)(→|\t|: | ?\| ?)/m

/** Removes the line numbers. Returns undefined if a line other than an empty last line has no number. */
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

/** Removes blank lines before and after the old text, and up to the same number from the new text. */
function withoutBlankEdges({ oldString, newString }: Texts): Texts | undefined {
  const [head, tail] = [blankHead(oldString), blankTail(oldString)]
  if (head + tail === 0) return undefined
  const [newHead, newTail] = [blankHead(newString), blankTail(newString)]
  // Blank lines that both texts have, or that only the old text has, were added by the model. Other blank lines may be
  // part of the edit.
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
  // JSON does not escape these characters. If the old text has them without a backslash, a backslash belongs to the
  // code.
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
  /** The old and the new text, concatenated. */
  given: string
  oldString: string
  newString: string
  plain: Texts
}

/** For each form, a function that returns false if the texts cannot have been escaped in this form. */
const isEscaped: Record<EscapeForm, (edit: Escaped) => boolean> = {
  // A fully escaped text has no unescaped line ends or double quotes, and no backslash sequence that JSON does not
  // define.
  escapes: ({ given, oldString, newString, plain }) =>
    !/(?<!\\)(?:\\\\)*"/.test(given) &&
    !/\\[^nrtbfu"\\/'`]/.test(given.replaceAll("\\\\", "")) &&
    (!given.includes("\n") || countLines(given) === countLines(plain.oldString + plain.newString)) &&
    (hasMoreThanLineEnds(oldString) || !hasMoreThanLineEnds(newString) || given.includes('\\"')) &&
    (/\\["\\]/.test(given) || keepsQuotes(plain)),
  "escaped-quotes": () => true,
  // An escaped line end within a string of the code could not be distinguished from other line ends.
  "escaped-line-ends": ({ given, newString, plain }) =>
    !given.includes("\n") && !hasMoreThanLineEnds(newString) && keepsQuotes(plain),
  // A string of the code with an escaped line end or backslash must also occur in the old text, because only the match
  // of the old text in the file proves it.
  "escaped-line-ends-outside-strings": ({ given, oldString, newString, plain }) =>
    !given.includes("\n") &&
    [...newString.matchAll(stringOfCode)].every(
      ([text]) => !/\\[nrt\\]/.test(text) || oldString.includes(text),
    ) &&
    !hasMoreThanLineEnds(newString.replaceAll(stringOfCode, "")) &&
    keepsQuotes(plain),
  "doubled-backslashes": () => true,
}

/** A string between quotes, without line endings. An apostrophe within a word is not a quote. */
const stringOfCode = /"(?:\\.|[^"\\\n])*"|(?<!\w)'(?:\\.|[^'\\\n])*'(?!\w)|`(?:\\.|[^`\\\n])*`/g

/** Returns true if no line ending of the new text is between quotes. Such a line ending would belong to the code. */
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

/**
 * Returns true if the text has backslashes other than in `\n`, `\r` and `\t`. A text without such backslashes does not
 * show how they would be escaped.
 */
function hasMoreThanLineEnds(text: string): boolean {
  return text.replaceAll(/\\[nrt]/g, "").includes("\\")
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
  "escaped-line-ends": /\\([nrt])/g,
  "escaped-line-ends-outside-strings": new RegExp(`${stringOfCode.source}|\\\\([nrt])`, "g"),
  "doubled-backslashes": /\\(\\)/g,
}

/** Removes one level of escapes, except before the `literal` characters. */
function unescapeText(text: string, form: EscapeForm, literal: readonly string[] = []): string {
  return text.replace(escapes[form], (found, character: string | undefined) =>
    character === undefined || literal.includes(character) ? found : (meanings.get(character) ?? found),
  )
}
