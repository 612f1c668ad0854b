import { isSimilar } from "../../util/similarity.ts"
import { type Change, type Compared, changesBetween, commonSequence, type Range } from "./common-sequence.ts"
import { indentFrame } from "./indent-frame.ts"
import { leastStep } from "./indent-unit.ts"
import { createFileForms } from "./look-alikes.ts"
import { hasLostIndentation, restoreIndentation } from "./lost-indentation.ts"
import { differInWords, mergeWords } from "./merge-words.ts"
import { isMeantForFile } from "./misquoted-change.ts"
import { createReindent, type IndentPair } from "./reindent.ts"
import { indentOf, type Line } from "./text-lines.ts"

/** The old lines are matched one to one by `file`: its lines from the first to the last of the span. */
export interface LineEdit {
  file: readonly Line[]
  old: readonly Line[]
  new: readonly Line[]
  /** The line ending that new lines get. */
  eol: string
  /** By how many columns the file goes one level deeper; absent: as the new lines do. */
  unit?: number | undefined
  /** True if the character occurs in the file at all. Absent: none but ASCII does. */
  isUsed?(character: string): boolean
}

/**
 * Why an edit cannot be made though its place is known: how its lines are to be indented cannot be told; it changes
 * words that the old text misquotes; it changes lines beside such as the old text leaves out; which of several equal
 * lines it keeps cannot be told; or it brings look-alikes that may be the model's or the text's.
 */
export type Unclear = "indentation" | "misquoted" | "left-out" | "equal-lines" | "look-alikes"

/** The text that takes the place of the old lines, or why there is none. */
export type Merged = { text: string } | { unclear: Unclear }

/**
 * What stands in the file after the edit. Lines that the new text keeps stay exactly as the file has them, however the
 * model wrote them; of lines that it changes, the words that it does not; new lines get the file's indentation, unless
 * they have it.
 *
 * The last line takes over the file's line ending where the old text had one; a new text that forgets it does not join
 * its last line to the next.
 */
export function mergeLines(edit: LineEdit): Merged {
  const merged = mergeAligned({ ...edit, fromEnd: false })
  if ("unclear" in merged) return merged
  // Of equal lines the first may be kept as well as the last. Where that makes two texts, nobody knows which is meant.
  const other = mergeAligned({ ...edit, fromEnd: true })
  return "text" in other && other.text === merged.text ? merged : { unclear: "equal-lines" }
}

/** `fromEnd`: which of equal lines are taken to be kept. */
type AlignedEdit = LineEdit & { fromEnd: boolean }

function mergeAligned(edit: AlignedEdit): Merged {
  const { file, new: fresh, fromEnd } = edit
  const frame = indentFrame({ file, old: edit.old, fresh })
  if (frame === undefined) return { unclear: "indentation" }
  const old = corrected(file, frame === "file" ? inFrameOf(file, edit.old) : edit.old, fresh)
  const compared = comparedLines(old, fresh, fromEnd)
  const partners = partnersOf(compared)
  const changes = changesBetween(compared)
  const misquoted = changes.filter(misquotes({ file, old, fresh }, changes))
  if (misquoted.some((change) => !isLineForLine(change))) return { unclear: "misquoted" }
  const isMisquoted = (index: number) =>
    misquoted.some((change) => index >= change.fresh.start && index < change.fresh.end)
  const word = wording({ ...edit, old })
  const place = hasLostIndentation({ file, old: edit.old, fresh })
    ? restorer({ ...edit, old }, partners)
    : indenter({ ...edit, old })
  const lines: Line[] = []
  for (const [index, line] of fresh.entries()) {
    const partner = partners[index]
    const own = partner?.kept ? file[partner.old] : undefined
    const worded = own ? own.text : word(line.text, partner?.old, isMisquoted(index))
    if (typeof worded !== "string") return worded
    const text = own ? own.text : place(worded, index, partner?.old)
    if (text === undefined) return { unclear: "indentation" }
    lines.push({ text, eol: own?.eol || (line.eol === "" ? "" : edit.eol), start: 0 })
  }
  const last = lines.at(-1)
  if (last && old.at(-1)?.eol !== "") last.eol = file.at(-1)?.eol ?? ""
  else if (last) last.eol = fresh.at(-1)?.eol === "" ? "" : edit.eol
  return { text: lines.map((line) => line.text + line.eol).join("") }
}

/** The old lines with the file's indentation, in which the new ones are written already. */
function inFrameOf(file: readonly Line[], old: readonly Line[]): Line[] {
  return old.map((line, index) => ({
    ...line,
    text: line.text.trim() === "" ? line.text : indentOf(file[index]?.text ?? "") + line.text.trimStart(),
  }))
}

/** The old lines, but those that the new text has as the file does: there the model quoted the file right. */
function corrected(file: readonly Line[], old: readonly Line[], fresh: readonly Line[]): Line[] {
  const quoted = new Set(fresh.map((line) => line.text.trim()))
  return old.map((line, index) => {
    const own = file[index]?.text.trim() ?? ""
    const isSlip = own !== "" && line.text.trim() !== own && quoted.has(own) && !quoted.has(line.text.trim())
    return isSlip ? { ...line, text: indentOf(line.text) + own } : line
  })
}

/** The old line that a new one repeats, or takes the place of in a change of as many lines. */
interface Partner {
  old: number
  kept: boolean
}

function partnersOf(compared: Compared): (Partner | undefined)[] {
  const partners = new Array<Partner | undefined>(compared.fresh).fill(undefined)
  for (const pair of commonSequence(compared)) partners[pair.fresh] = { old: pair.old, kept: true }
  for (const change of changesBetween(compared)) {
    if (!isLineForLine(change)) continue
    for (let at = 0; at < change.old.end - change.old.start; at++) {
      partners[change.fresh.start + at] = { old: change.old.start + at, kept: false }
    }
  }
  return partners
}

/** Says of a change whether the file has other words in it than the old text, and the new text is not meant for those. */
function misquotes(
  edit: { file: readonly Line[]; old: readonly Line[]; fresh: readonly Line[] },
  all: readonly Change[],
) {
  const texts = (lines: readonly Line[], { start, end }: Range) =>
    lines.slice(start, end).map((line) => line.text.trim())
  const added = all.flatMap((change) => texts(edit.fresh, change.fresh))
  const others = edit.old.filter((line, at) => differInWords(line.text, edit.file[at]?.text ?? "")).length
  return (change: Change) =>
    !isMeantForFile({
      isOnly: others <= 1,
      file: texts(edit.file, change.old),
      old: texts(edit.old, change.old),
      fresh: texts(edit.fresh, change.fresh),
      added,
    })
}

function isLineForLine({ old, fresh }: Change): boolean {
  return old.end - old.start === fresh.end - fresh.start
}

function comparedLines(old: readonly Line[], fresh: readonly Line[], fromEnd: boolean): Compared {
  const same = (a: number, b: number) => old[a]?.text === fresh[b]?.text
  return { old: old.length, fresh: fresh.length, same, fromEnd }
}

/** Gives new lines the words and signs of the file where the model did not mean to change them. */
function wording({ file, old, isUsed = () => false }: LineEdit) {
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

/** Gives new lines their indentation where the model wrote none at all: what the lines around them say. */
function restorer({ file, old, new: fresh, unit }: LineEdit, partners: readonly (Partner | undefined)[]) {
  const lines = fresh.map((line, index) => {
    const partner = partners[index]
    const isKnown =
      partner && (partner.kept || isSimilar(old[partner.old]?.text.trim() ?? "", line.text.trim()))
    return { text: line.text.trim(), indent: isKnown ? indentOf(file[partner.old]?.text ?? "") : undefined }
  })
  const isTabbed = file.some((line) => line.text.startsWith("\t"))
  // One column is how comments are aligned.
  const width = leastStep(file) ?? unit ?? 1
  const level = isTabbed ? "\t" : width > 1 ? " ".repeat(width) : ""
  const indents = level === "" ? undefined : restoreIndentation(lines, level)
  return (text: string, index: number): string | undefined =>
    text.trim() === "" ? text : indents && (indents[index] ?? "") + text.trimStart()
}

/** Gives new lines their indentation, learnt from the old lines and what the file has for them. */
function indenter({ file, old, new: fresh, unit }: LineEdit) {
  const pairs = old.map((line, index) => ({
    text: line.text.trim(),
    blank: line.text.trim() === "",
    from: indentOf(line.text),
    to: indentOf(file[index]?.text ?? ""),
  }))
  const [first, ...rest] = pairs.filter((pair) => !pair.blank)
  const all = first ? [first, ...rest] : []
  const own = leastStep(fresh)
  const scale = unit === undefined || own === undefined ? undefined : unit / own
  const [atFirst, elsewhere] =
    first && rest.length > 0 && isCutOff(first, rest)
      ? [createReindent([first]), createReindent(rest)]
      : [createReindent(all, { scale }), createReindent(all, { scale })]
  return (text: string, index: number, partner: number | undefined): string | undefined => {
    if (text.trim() === "") return text
    const indent = indentOf(text)
    const pair = partner === undefined ? undefined : pairs[partner]
    const known =
      pair && !pair.blank && pair.from === indent && isSimilar(pair.text, text.trim()) ? pair.to : undefined
    const found = known ?? (index === 0 ? atFirst(indent) : elsewhere(indent))
    return found === undefined ? undefined : found + text.slice(indent.length)
  }
}

/** True if the old text seems to begin after its first line's indentation, and the others have the file's. */
function isCutOff(first: IndentPair, rest: readonly IndentPair[]): boolean {
  return first.from === "" && first.to !== "" && rest.every((pair) => pair.from === pair.to)
}
