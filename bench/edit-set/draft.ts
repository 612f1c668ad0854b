import { indentOf } from "../../src/tools/edit/text.ts"
import { type ChangedLine, linesOf, type Random, type RealEdit } from "./edits.ts"

/**
 * An edit as a model requests it, with the expected text of the file. If `expected` is undefined, the edit must be
 * refused.
 */
export interface BentEdit {
  kind: string
  path: string
  file: string
  oldString: string
  newString: string
  expected: string | undefined
}

/** An edit before it is bent. Lines in all texts end with `\n`. */
export interface Draft {
  edit: RealEdit
  random: Random
  file: string
  expected: string
  oldString: string
  newString: string
}

/** Bends an edit. Returns undefined if the edit cannot be bent in this way. */
export type Bend = (draft: Draft) => Partial<Omit<BentEdit, "kind" | "path">> | undefined

/** Returns the text of one side of the edit as the model writes it. */
export function model(
  edit: RealEdit,
  write: (line: ChangedLine, index: number) => string | undefined,
  side: "old" | "new",
): string {
  return edit.lines
    .map((line, index) => (line.kind === "kept" || line.kind === side ? write(line, index) : undefined))
    .filter((text) => text !== undefined)
    .join("\n")
}

/** Rewrites the lines of both texts from the model. */
export function rewriteModel(edit: RealEdit, write: (line: ChangedLine) => string) {
  const written = new Map(edit.lines.map((line) => [line, write(line)]))
  if (edit.lines.every((line) => written.get(line) === line.text)) return undefined
  const text = (line: ChangedLine) => written.get(line)
  return { oldString: model(edit, text, "old"), newString: model(edit, text, "new") }
}

/** Rewrites the file, but not the lines that the model adds. */
export function rewriteFile(edit: RealEdit, write: (text: string) => string) {
  if (edit.lines.every((line) => line.kind === "new" || write(line.text) === line.text)) return undefined
  const around = (text: string) => text.replace(/.+/g, write)
  const lines = (side: "old" | "new") =>
    edit.lines
      .filter((line) => line.kind === "kept" || line.kind === side)
      .map((line) => (line.kind === "new" ? line.text : write(line.text)))
      .join("\n")
  const [before, after] = [around(edit.before), around(edit.after)]
  const end = edit.after === "" ? "" : "\n"
  return { file: before + lines("old") + end + after, expected: before + lines("new") + end + after }
}

/** Rewrites the file if this changes only kept lines. For changed lines, the expected text would be ambiguous. */
export function keptIn(edit: RealEdit, write: (text: string) => string) {
  const isOther = edit.lines.some((line) => line.kind !== "kept" && write(line.text) !== line.text)
  return isOther ? undefined : rewriteFile(edit, write)
}

/** Rewrites both texts from the model, or the file and the expected result. */
export function both(draft: Draft, how: { onModel?(text: string): string; onFile?(text: string): string }) {
  const { onModel = (text) => text, onFile = (text) => text } = how
  const [oldString, file] = [onModel(draft.oldString), onFile(draft.file)]
  if (oldString === draft.oldString && file === draft.file) return undefined
  return { oldString, file, newString: onModel(draft.newString), expected: onFile(draft.expected) }
}

/** Rewrites one kept line in both texts. Never chooses the first or last line. */
export function bendKept(draft: Draft, write: (text: string) => string | undefined, omit = false) {
  const { edit, random } = draft
  const index = pickIndex(edit, random, (line, at) => {
    if (line.kind !== "kept" || line.text.trim() === "" || at === 0 || at === edit.lines.length - 1)
      return false
    return omit || write(line.text) !== undefined
  })
  if (index === undefined) return undefined
  const text = (line: ChangedLine, at: number) => (at === index ? write(line.text) : line.text)
  return { oldString: model(edit, text, "old"), newString: model(edit, text, "new") }
}

/** Returns the index of a random matching line. */
export function pickIndex(
  edit: RealEdit,
  random: Random,
  fits: (line: ChangedLine, index: number) => boolean,
) {
  const indexes = [...edit.lines.keys()].filter((index) => {
    const line = edit.lines[index]
    return line !== undefined && fits(line, index)
  })
  return indexes.length > 0 ? random.pick(indexes) : undefined
}

/**
 * Returns the width of an indentation level, 2 or 4, if both texts are indented by whole levels of spaces, and 0
 * otherwise.
 */
export function unitOf({ file, oldString, newString }: Draft): number {
  const widths = `${oldString}\n${newString}`
    .split("\n")
    .filter((line) => line.trim() !== "")
    .map(indentOf)
  if (widths.every((width) => width === "") || widths.some((width) => /\t/.test(width))) return 0
  const unit = [4, 2].find((wide) => widths.every((width) => width.length % wide === 0)) ?? 0
  const isHalf = file.split("\n").some((line) => line.trim() !== "" && indentOf(line).length === unit / 2)
  return isHalf ? 0 : unit
}

/** Replaces each group of `unit` spaces with a tab. */
export function toTabs(text: string, unit: number): string {
  return text.replace(
    /^ +/gm,
    (spaces) => "\t".repeat(Math.floor(spaces.length / unit)) + " ".repeat(spaces.length % unit),
  )
}

/** Returns the number of spaces at the start of all lines, or 0 if there are tabs. */
export function sharedIndent({ oldString, newString }: Draft): number {
  const lines = `${oldString}\n${newString}`.split("\n").filter((line) => line.trim() !== "")
  return lines.every((line) => !line.startsWith("\t"))
    ? Math.min(...lines.map((line) => indentOf(line).length))
    : 0
}

/** Removes up to `by` spaces from each line. */
export function dedent(text: string, by: number): string {
  return text.replace(new RegExp(`^ {1,${by}}`, "gm"), "")
}

/** Maximum increase of indentation, in columns. Wider steps are alignment or generated text. */
const maxStep = 8

/**
 * Returns whether the brackets of the new lines determine their indentation. Lines must go deeper only after an opening
 * bracket, by a step that the file uses, and back before a closing bracket. Synthetic edits often do not meet these
 * conditions.
 */
export function tellsIndents(edit: RealEdit): boolean {
  const lines = linesOf(edit, "new").filter((line) => line.trim() !== "")
  const steps = new Set(
    [linesOf(edit, "old"), edit.before.split("\n"), edit.after.split("\n")].flatMap(stepsInto),
  )
  return (
    leftOpen(linesOf(edit, "old")) === leftOpen(lines) &&
    stepsInto(lines).every((step) => steps.has(step)) &&
    lines.slice(1).every((line, index) => follows(lines[index] ?? "", line))
  )
}

/** Returns the increases of indentation, in columns, after lines that end with an opening bracket. */
function stepsInto(lines: readonly string[]): number[] {
  return lines.slice(1).flatMap((line, index) => {
    const step = indentOf(line).length - indentOf(lines[index] ?? "").length
    return step > 0 && /[([{]\s*$/.test(lines[index] ?? "") ? [step] : []
  })
}

function leftOpen(lines: readonly string[]): number {
  const brackets = lines.join("\n").match(/[()[\]{}]/g) ?? []
  return brackets.filter((bracket) => /[([{]/.test(bracket)).length * 2 - brackets.length
}

function follows(above: string, line: string): boolean {
  const step = indentOf(line).length - indentOf(above).length
  const closes = /^\s*[)\]}]/.test(line)
  const opens = /[([{]\s*$/.test(above)
  if (opens) return closes ? step === 0 : step > 0 && step <= maxStep
  if (closes) return step < 0
  const goesOn = /(?:[=>:,?&|+*)-]|\b(?:else|return))\s*$/.test(above) || /^\s*[.?:&|+*<-]/.test(line)
  return step <= (goesOn ? maxStep : 0)
}

/** Changes the first word with at least four letters. Returns undefined if no word is that long. */
export function changeWord(text: string, ending = "ed"): string | undefined {
  const word = /[A-Za-z]\w{3,}/.exec(text)?.[0]
  return word && text.replace(word, word + ending)
}

/** Returns the only word that differs between two lines, or undefined if more than one word differs. */
export function onlyWordChanged(old: string, fresh: string): string | undefined {
  const [a, b] = [old.split(/\b/), fresh.split(/\b/)]
  if (a.length !== b.length) return undefined
  const changed = a.filter((word, index) => word !== b[index])
  return changed.length === 1 && /^\w{3,}$/.test(changed[0] ?? "") ? changed[0] : undefined
}
