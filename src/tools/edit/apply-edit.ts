import type { EditMatch } from "./find-edit.ts"
import { createReindent, indentFrame, indentUnit, type LineTexts, leastStep } from "./indentation.ts"
import { createFileForms, toPlain } from "./look-alikes.ts"
import { findMarkedBlocks, isMark, type StrategyName } from "./strategies.ts"
import {
  type Change,
  type Compared,
  changesBetween,
  commonSequence,
  coversLines,
  eolFinder,
  indentOf,
  isBlank,
  isSimilar,
  type Line,
  type Span,
  splitLines,
  toLf,
  wordsOf,
} from "./text.ts"

/** The merged text, or the reason why the edit is unclear. */
export type Merged = { text: string } | { unclear: Unclear }

/**
 * The reason why an edit whose location is known cannot be applied.
 *
 * - `indentation`: the indentation of the new lines is unclear.
 * - `misquoted`: the edit changes words that the old text misquotes.
 * - `left-out`: the position of omitted lines is unclear.
 * - `equal-lines`: it is unclear which of several equal lines the edit keeps.
 * - `look-alikes`: it is unclear whether a look-alike character is intended.
 */
export type Unclear = "indentation" | "misquoted" | "left-out" | "equal-lines" | "look-alikes"

/**
 * Applies an edit without changing characters outside the spans. New text gets the line ending used at its location. If
 * the old text did not match exactly, the new text gets the file's indentation, and its unchanged lines, words and
 * characters stay as they are in the file.
 */
export function applyEdit({
  text,
  match,
}: {
  text: string
  match: Extract<EditMatch, { kind: "found" }>
}): Merged {
  const { strategy, reading, spans } = match
  const eolAt = eolFinder(text)
  const replace = replacer(strategy, text, { old: toLf(reading.oldString), fresh: toLf(reading.newString) })
  const pieces: string[] = []
  let end = 0
  for (const span of spans) {
    // If the file has no line ending, the new text keeps its own line endings.
    const eol = eolAt(span) ?? /\r\n|[\n\r]/.exec(reading.newString)?.[0] ?? "\n"
    const replacement = replace(span, eol)
    if ("unclear" in replacement) return replacement
    pieces.push(text.slice(end, span.start), replacement.text)
    end = span.end
  }
  pieces.push(text.slice(end))
  return { text: pieces.join("") }
}

type Replace = (span: Span, eol: string) => Merged

/** Returns a function that replaces a span. Both `wanted` texts end their lines with `\n`. */
function replacer(strategy: StrategyName, text: string, wanted: { old: string; fresh: string }): Replace {
  const literally: Replace = (_, eol) => ({ text: wanted.fresh.replaceAll("\n", eol) })
  if (strategy === "exact") return literally
  const byLines = lineReplacer(strategy, text, wanted)
  const byWords = wordReplacer(text, wanted)
  return (span, eol) => {
    // If the span mixes line endings, each kept line keeps its line ending.
    if (strategy === "line-endings") {
      const eols = new Set(text.slice(span.start, span.end).match(/\r\n|[\n\r]/g))
      return coversLines(text, span) && eols.size > 1 ? byLines(span, eol) : literally(span, eol)
    }
    return coversLines(text, span) ? byLines(span, eol) : byWords(span, eol)
  }
}

/** Returns a function that replaces a span that may start and end within lines. */
function wordReplacer(text: string, wanted: { old: string; fresh: string }): Replace {
  return ({ start, end }, eol) => {
    const pair = { file: text.slice(start, end), old: wanted.old }
    const inFileForms = createFileForms([pair], (character) => text.includes(character))
    const withEol = (fresh: string) => inFileForms(fresh)?.replaceAll("\n", eol)
    return mergeWords({ ...pair, fresh: wanted.fresh, inFileForms: withEol })
  }
}

function lineReplacer(strategy: StrategyName, text: string, wanted: { old: string; fresh: string }): Replace {
  const [old, fresh] = [splitLines(wanted.old), splitLines(wanted.fresh)]
  let unit: { width: number | undefined } | undefined
  const isUsed = (character: string) => text.includes(character)
  return ({ start, end }, eol) => {
    const file = spanLines(text.slice(start, end), old)
    const whole = strategy === "left-out-lines" ? fillMarks({ file, old, fresh }) : { old, fresh }
    if (!whole) return { unclear: "left-out" }
    // The result is computed only once, because the text may be large.
    unit ??= { width: indentUnit(splitLines(text)) }
    return mergeLines({ file, old: whole.old, new: whole.fresh, eol, unit: unit.width, isUsed })
  }
}

/**
 * Returns the lines of a span of whole lines. If the old text ends without a line ending, adds the empty last line of
 * the span, which `splitLines` omits.
 */
function spanLines(span: string, old: readonly Line[]): Line[] {
  const lines = splitLines(span)
  const isCut = old.at(-1)?.eol === "" && (span === "" || lines.at(-1)?.eol !== "")
  return isCut ? [...lines, { text: "", eol: "", start: span.length }] : lines
}

/** An edit with marks for omitted lines. The first lines of `file` and `old` correspond, and so do their last lines. */
interface MarkedEdit {
  file: readonly Line[]
  old: readonly Line[]
  fresh: readonly Line[]
}

/**
 * Replaces the marks in both texts with the lines they stand for. Returns undefined if it is unclear which marks the
 * new text keeps.
 */
function fillMarks(edit: MarkedEdit): { old: Line[]; fresh: Line[] } | undefined {
  const [filled, other] = [fillAligned(edit, false), fillAligned(edit, true)]
  const isSame = filled?.fresh.every((line, at) => line.text === other?.fresh[at]?.text)
  return isSame && filled?.fresh.length === other?.fresh.length ? filled : undefined
}

/**
 * Replaces the marks for one alignment of the texts. If several lines are equal, the new text keeps the first of these
 * lines, or the last of them if `fromEnd` is true.
 */
function fillAligned({ file, old, fresh }: MarkedEdit, fromEnd: boolean) {
  const [block, ...more] = findMarkedBlocks(file, old).filter(
    ({ start, quoted }) => start === 0 && quoted.length === file.length,
  )
  if (!block || more.length > 0) return undefined
  const same = (a: number, b: number) => old[a]?.text === fresh[b]?.text
  const kept = new Map(
    commonSequence({ old: old.length, fresh: fresh.length, same, fromEnd }).map((pair) => [
      pair.old,
      pair.fresh,
    ]),
  )
  const filled = new Map<number, Line[]>()
  const completed: Line[] = []
  let before = -1
  for (const [at, line] of file.entries()) {
    const index = block.quoted[at]
    completed.push((index !== undefined && old[index]) || line)
    if (index !== undefined) {
      before = index
      continue
    }
    const mark = kept.get(before + 1)
    if (mark === undefined) return undefined
    filled.set(mark, [...(filled.get(mark) ?? []), line])
  }
  // A mark that stands for no lines would be written into the file.
  if (fresh.some((line, index) => isMark(line) && !filled.has(index))) return undefined
  const all = fresh.flatMap((line, index) => filled.get(index) ?? [line])
  const eol = fresh.at(-1)?.eol ?? ""
  return {
    old: completed,
    fresh: all.map((line, index) => (index === all.length - 1 ? { ...line, eol } : line)),
  }
}

/** An edit of whole lines. `file` and `old` correspond line by line. */
export interface LineEdit {
  file: readonly Line[]
  old: readonly Line[]
  new: readonly Line[]
  /** Line ending of new lines. */
  eol: string
  /** Width of the file's indentation levels, in characters. A tab is one character. */
  unit?: number
  /** Returns true if the file contains the character. Default: always false. */
  isUsed?(character: string): boolean
}

/**
 * Merges an edit of lines into the file. Kept lines stay exactly as they are in the file, and changed lines keep their
 * unchanged words. New lines get the file's indentation. If the old text ends with a line ending, the last line gets
 * the line ending of the last line in `file`.
 */
export function mergeLines(edit: LineEdit): Merged {
  const merged = mergeAligned({ ...edit, fromEnd: false })
  if ("unclear" in merged) return merged
  // The new text may keep the first or the last of equal lines. If the results differ, the edit is unclear.
  const other = mergeAligned({ ...edit, fromEnd: true })
  return "text" in other && other.text === merged.text ? merged : { unclear: "equal-lines" }
}

/**
 * An edit and its alignment. If several lines are equal, the new text keeps the first of these lines, or the last of
 * them if `fromEnd` is true.
 */
type AlignedEdit = LineEdit & { fromEnd: boolean }

function mergeAligned(edit: AlignedEdit): Merged {
  const { file, new: fresh, fromEnd } = edit
  const frame = indentFrame({ file, old: edit.old, fresh })
  if (frame === undefined) return { unclear: "indentation" }
  const old = corrected(file, frame === "file" ? withIndentOf(file, edit.old) : edit.old, fresh)
  const same = (a: number, b: number) => old[a]?.text === fresh[b]?.text
  const compared = { old: old.length, fresh: fresh.length, same, fromEnd }
  const changes = changesBetween(compared)
  const misquoted = changes.filter((change) => !isMeantForFile({ file, old, fresh }, change, changes))
  if (misquoted.some((change) => !isLineForLine(change))) return { unclear: "misquoted" }
  const isMisquoted = (index: number) =>
    misquoted.some((change) => index >= change.fresh.start && index < change.fresh.end)
  const partners = partnersOf(compared, changes)
  const reword = rewording({ ...edit, old })
  const indent = indenter({ ...edit, old })
  const lines: Line[] = []
  for (const [index, line] of fresh.entries()) {
    const partner = partners[index]
    const own = partner?.kept ? file[partner.old] : undefined
    const worded = own ? own.text : reword(line.text, partner?.old, isMisquoted(index))
    if (typeof worded !== "string") return worded
    const text = own ? own.text : indent(worded, index, partner?.old)
    if (text === undefined) return { unclear: "indentation" }
    lines.push({ text, eol: own?.eol || (line.eol === "" ? "" : edit.eol), start: 0 })
  }
  const last = lines.at(-1)
  if (last && old.at(-1)?.eol !== "") last.eol = file.at(-1)?.eol ?? ""
  else if (last) last.eol = fresh.at(-1)?.eol === "" ? "" : edit.eol
  return { text: lines.map((line) => line.text + line.eol).join("") }
}

function withIndentOf(file: readonly Line[], old: readonly Line[]): Line[] {
  return old.map((line, index) => ({
    ...line,
    text: isBlank(line) ? line.text : indentOf(file[index]?.text ?? "") + line.text.trimStart(),
  }))
}

/**
 * Returns true if a change fits the file although one old line misquotes a line in the file: either the new lines
 * replace the wrong words with the file's words, or they remove the line and both lines share a word. Any other change
 * may be meant for a different text.
 */
function isMeantForFile(
  { file, old, fresh }: LineTexts,
  change: Change,
  changes: readonly Change[],
): boolean {
  const differs = (at: number) => differInWords(old[at]?.text ?? "", file[at]?.text ?? "")
  const [only] = indexesOf(change.old).filter(differs)
  if (only === undefined) return true
  // A second misquoted line makes the location doubtful.
  if ([...old.keys()].filter(differs).length > 1) return false
  const [own, quoted] = [file[only]?.text.trim() ?? "", old[only]?.text.trim() ?? ""]
  const [ownWords, quotedWords] = [wordsOf(own), wordsOf(quoted)]
  const wanted = fresh.slice(change.fresh.start, change.fresh.end).flatMap((line) => wordsOf(line.text))
  const wrong = quotedWords.filter((word) => !ownWords.includes(word))
  const missing = ownWords.filter((word) => !quotedWords.includes(word))
  const hasFilesWords =
    wrong.length > 0 &&
    missing.length > 0 &&
    missing.every((word) => wanted.includes(word)) &&
    !wrong.some((word) => wanted.includes(word))
  const added = changes.flatMap((each) => fresh.slice(each.fresh.start, each.fresh.end))
  const isRemoved = added.every(({ text }) => {
    const words = wordsOf(text)
    const shared = quotedWords.filter((word) => words.includes(word))
    return !isSimilar(quoted, text.trim()) && shared.length * 2 < quotedWords.length
  })
  return hasFilesWords || (isRemoved && quotedWords.some((word) => ownWords.includes(word)))
}

/** Corrects misquoted old lines if the new text quotes them as they are in the file. */
function corrected(file: readonly Line[], old: readonly Line[], fresh: readonly Line[]): Line[] {
  const quoted = new Set(fresh.map((line) => line.text.trim()))
  return old.map((line, index) => {
    const own = file[index]?.text.trim() ?? ""
    const isMisquoted = own !== "" && quoted.has(own) && !quoted.has(line.text.trim())
    return isMisquoted ? { ...line, text: indentOf(line.text) + own } : line
  })
}

/**
 * The old line that corresponds to a new line: the new line repeats it, or replaces it in a change that keeps the
 * number of lines.
 */
interface Partner {
  old: number
  kept: boolean
}

function partnersOf(compared: Compared, changes: readonly Change[]): (Partner | undefined)[] {
  const partners = new Array<Partner | undefined>(compared.fresh).fill(undefined)
  for (const pair of commonSequence(compared)) partners[pair.fresh] = { old: pair.old, kept: true }
  for (const change of changes.filter(isLineForLine)) {
    for (const [at, old] of indexesOf(change.old).entries())
      partners[change.fresh.start + at] = { old, kept: false }
  }
  return partners
}

function isLineForLine({ old, fresh }: Change): boolean {
  return old.end - old.start === fresh.end - fresh.start
}

function indexesOf({ start, end }: Span): number[] {
  return Array.from({ length: end - start }, (_, offset) => start + offset)
}

/**
 * Returns a function that rewrites new lines with the file's words and characters, except where the model changes them.
 */
function rewording({ file, old, isUsed = () => false }: LineEdit) {
  const pairs = old.map((line, index) => ({ old: line.text.trim(), file: file[index]?.text.trim() ?? "" }))
  const inFileForms = createFileForms(pairs, isUsed)
  return (text: string, partner: number | undefined, isMisquoted: boolean): string | { unclear: Unclear } => {
    const pair = partner === undefined ? undefined : pairs[partner]
    if (!pair || text.trim() === "") return inFileForms(text) ?? { unclear: "look-alikes" }
    const [indent, fresh] = [indentOf(text), text.trim()]
    const merged = mergeWords({ ...pair, fresh, inFileForms })
    if ("unclear" in merged && merged.unclear === "misquoted" && !isMisquoted) return text
    return "unclear" in merged ? merged : indent + merged.text + text.slice(indent.length + fresh.length)
  }
}

/** Returns a function that indents new lines as in the file. Derives the indentation from the old lines. */
function indenter({ file, old, new: fresh, unit }: LineEdit) {
  const pairs = old.map((line, index) => ({
    text: line.text.trim(),
    from: indentOf(line.text),
    to: indentOf(file[index]?.text ?? ""),
  }))
  const [first, ...rest] = pairs.filter((pair) => pair.text !== "")
  const all = first ? [first, ...rest] : []
  const own = leastStep(fresh)
  const scale = unit === undefined || own === undefined ? undefined : unit / own
  // The model may have quoted the first line without its indentation.
  const isCutOff =
    first?.from === "" && first.to !== "" && rest.length > 0 && rest.every((pair) => pair.from === pair.to)
  const [atFirst, elsewhere] = isCutOff
    ? [createReindent([first]), createReindent(rest)]
    : [createReindent(all, { scale }), createReindent(all, { scale })]
  return (text: string, index: number, partner: number | undefined): string | undefined => {
    if (text.trim() === "") return text
    const indent = indentOf(text)
    const pair = partner === undefined ? undefined : pairs[partner]
    const isSameLine = pair && pair.text !== "" && pair.from === indent && isSimilar(pair.text, text.trim())
    const found = isSameLine ? pair.to : index === 0 ? atFirst(indent) : elsewhere(indent)
    return found === undefined ? undefined : found + text.slice(indent.length)
  }
}

/** A line or a span of the file in three versions. A line has no outer white space. */
interface Wordings {
  file: string
  old: string
  fresh: string
  /** Returns the text with look-alikes as the file writes them, or undefined if the intended characters are unclear. */
  inFileForms(text: string): string | undefined
}

/**
 * Applies the change from `old` to `fresh` to the file's text, word by word. Keeps other differences between the file
 * and `old`. The result is `misquoted` if the change affects such a difference. A difference in spacing or look-alikes
 * does not count: where it overlaps with the change, the change takes precedence.
 */
function mergeWords({ file, old, fresh, inFileForms }: Wordings): Merged {
  if (file === old) {
    const text = inFileForms(fresh)
    return text === undefined ? { unclear: "look-alikes" } : { text }
  }
  const words = tokensOf(old)
  const wanted = rewordings(words, tokensOf(fresh))
  const kept: Rewording[] = []
  for (const own of rewordings(words, tokensOf(file))) {
    if (wanted.some((change) => isSame(change, own))) continue
    if (!differInWords(own.from, own.to)) {
      if (!wanted.some((change) => overlap(change, own))) kept.push(own)
    } else if (wanted.some((change) => touch(change, own))) return { unclear: "misquoted" }
    else kept.push(own)
  }
  const asked: Rewording[] = []
  for (const change of wanted) {
    const to = inFileForms(change.to)
    if (to === undefined) return { unclear: "look-alikes" }
    asked.push({ ...change, to })
  }
  let [text, at] = ["", 0]
  for (const { start, end, to } of [...kept, ...asked].sort((a, b) => a.start - b.start || a.end - b.end)) {
    text += words.slice(at, start).join("") + to
    at = end
  }
  return { text: text + words.slice(at).join("") }
}

/** Returns true if two texts differ in more than spacing and look-alikes. */
function differInWords(a: string, b: string): boolean {
  const loosened = (text: string) => toPlain(text).replace(/\s+/g, "")
  return loosened(a) !== loosened(b)
}

/** Splits text into words, runs of white space and single punctuation characters. */
function tokensOf(text: string): string[] {
  return text.match(/[\p{L}\p{N}_]+|\s+|[^\p{L}\p{N}_\s]/gu) ?? []
}

/** A change to the tokens from `start` to `end`, excluding `end`. */
interface Rewording {
  start: number
  end: number
  from: string
  to: string
}

function rewordings(words: readonly string[], others: readonly string[]): Rewording[] {
  const same = (a: number, b: number) => words[a] === others[b]
  return changesBetween({ old: words.length, fresh: others.length, same }).flatMap(({ old, fresh }) => {
    const [from, to] = [words.slice(old.start, old.end), others.slice(fresh.start, fresh.end)]
    if (from.length !== to.length) return [{ ...old, from: from.join(""), to: to.join("") }]
    return from.map((word, at) => ({
      start: old.start + at,
      end: old.start + at + 1,
      from: word,
      to: to[at] ?? "",
    }))
  })
}

function isSame(a: Rewording, b: Rewording): boolean {
  return a.start === b.start && a.end === b.end && a.to === b.to
}

function overlap(a: Rewording, b: Rewording): boolean {
  return (a.start < b.end && b.start < a.end) || (a.start === b.start && a.end === b.end)
}

function touch(a: Rewording, b: Rewording): boolean {
  return a.start <= b.end && b.start <= a.end
}
