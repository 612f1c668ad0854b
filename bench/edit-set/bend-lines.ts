import type { Draft } from "./bend.ts"
import type { Random } from "./random.ts"
import type { ChangedLine, RealEdit } from "./real-edit.ts"

/** The lines of one side as the model writes them. */
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

/** The model writes the lines of both texts otherwise. */
export function rewriteModel(edit: RealEdit, write: (line: ChangedLine) => string) {
  const written = new Map(edit.lines.map((line) => [line, write(line)]))
  if (edit.lines.every((line) => written.get(line) === line.text)) return undefined
  const text = (line: ChangedLine) => written.get(line)
  return { oldString: model(edit, text, "old"), newString: model(edit, text, "new") }
}

/** The file is written in another way than the model knows it; lines that the model adds are as the model writes them. */
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

/** The same, where only kept lines are concerned: how a changed one is to be written then is a matter of taste. */
export function keptIn(edit: RealEdit, write: (text: string) => string) {
  const isOther = edit.lines.some((line) => line.kind !== "kept" && write(line.text) !== line.text)
  return isOther ? undefined : rewriteFile(edit, write)
}

/** Bends whole texts on both sides: what the model writes, or file and result. */
export function both(draft: Draft, how: { onModel?(text: string): string; onFile?(text: string): string }) {
  const { onModel = (text) => text, onFile = (text) => text } = how
  const [oldString, file] = [onModel(draft.oldString), onFile(draft.file)]
  if (oldString === draft.oldString && file === draft.file) return undefined
  return { oldString, file, newString: onModel(draft.newString), expected: onFile(draft.expected) }
}

/** Bends one kept line that is neither the first nor the last, on both sides. */
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

/** One of the lines that fit. */
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

/** The width of one level, 2 or 4, where both texts are indented by whole levels of spaces; else 0. */
export function unitOf({ file, oldString, newString }: Draft): number {
  const widths = `${oldString}\n${newString}`
    .split("\n")
    .filter((line) => line.trim() !== "")
    .map(indent)
  if (widths.every((width) => width === "") || widths.some((width) => /\t/.test(width))) return 0
  const unit = [4, 2].find((wide) => widths.every((width) => width.length % wide === 0)) ?? 0
  const isHalf = file.split("\n").some((line) => line.trim() !== "" && indent(line).length === unit / 2)
  return isHalf ? 0 : unit
}

/** Tabs for every `unit` of spaces. */
export function toTabs(text: string, unit: number): string {
  return text.replace(
    /^ +/gm,
    (spaces) => "\t".repeat(Math.floor(spaces.length / unit)) + " ".repeat(spaces.length % unit),
  )
}

/** How many spaces every line has; 0 where there are tabs. */
export function sharedIndent({ oldString, newString }: Draft): number {
  const lines = `${oldString}\n${newString}`.split("\n").filter((line) => line.trim() !== "")
  return lines.every((line) => !line.startsWith("\t"))
    ? Math.min(...lines.map((line) => indent(line).length))
    : 0
}

/** At most so many spaces less. */
export function dedent(text: string, by: number): string {
  return text.replace(new RegExp(`^ {1,${by}}`, "gm"), "")
}

/** What a line begins with. */
export function indent(line: string): string {
  return /^[ \t]*/.exec(line)?.[0] ?? ""
}
