import { createReindent, type IndentPair } from "./reindent.ts"
import { indentOf, type Line } from "./text-lines.ts"

/** Above this product of line counts only the common beginning and end of old and new lines are told apart. */
const maxComparisons = 1_000_000

/** The old lines are matched one to one by `file`: its lines from the first to the last of the span. */
export interface LineEdit {
  file: readonly Line[]
  old: readonly Line[]
  new: readonly Line[]
  /** The line ending that new lines get. */
  eol: string
}

/**
 * What stands in the file after the edit. Lines that the new text keeps stay exactly as the file has them, however the
 * model wrote them; new lines get the file's indentation. Undefined where that cannot be known.
 *
 * The last line takes over the file's line ending where the old text had one; a new text that forgets it does not join
 * its last line to the next.
 */
export function mergeLines(edit: LineEdit): string | undefined {
  const partners = partnersOf(edit.old, edit.new)
  const place = indenter(edit)
  const lines: Line[] = []
  for (const [index, line] of edit.new.entries()) {
    const partner = partners[index]
    const own = partner?.kept ? edit.file[partner.old] : undefined
    const text = own ? own.text : place(line.text, index, partner?.old)
    if (text === undefined) return undefined
    lines.push({ text, eol: own?.eol || (line.eol === "" ? "" : edit.eol), start: 0 })
  }
  const last = lines.at(-1)
  if (last && edit.old.at(-1)?.eol !== "") last.eol = edit.file.at(-1)?.eol ?? ""
  else if (last) last.eol = edit.new.at(-1)?.eol === "" ? "" : edit.eol
  return lines.map((line) => line.text + line.eol).join("")
}

/** The old line that a new one repeats, or takes the place of in a change of as many lines. */
interface Partner {
  old: number
  kept: boolean
}

function partnersOf(old: readonly Line[], fresh: readonly Line[]): (Partner | undefined)[] {
  const kept = keptLines(old, fresh)
  const partners: (Partner | undefined)[] = []
  let [oldAt, newAt] = [0, 0]
  for (const next of [...kept, { old: old.length, fresh: fresh.length }]) {
    const sameSize = next.old - oldAt === next.fresh - newAt
    for (; newAt < next.fresh; newAt++, oldAt++)
      partners.push(sameSize ? { old: oldAt, kept: false } : undefined)
    if (newAt < fresh.length) partners.push({ old: next.old, kept: true })
    oldAt = next.old + 1
    newAt = next.fresh + 1
  }
  return partners
}

/** Gives new lines their indentation, learnt from the old lines and what the file has for them. */
function indenter({ file, old }: LineEdit) {
  const pairs = old.map((line, index) => ({
    blank: line.text.trim() === "",
    from: indentOf(line.text),
    to: indentOf(file[index]?.text ?? ""),
  }))
  const [first, ...rest] = pairs.filter((pair) => !pair.blank)
  const all = first ? [first, ...rest] : []
  const [atFirst, elsewhere] =
    first && rest.length > 0 && isCutOff(first, rest)
      ? [createReindent([first]), createReindent(rest)]
      : [createReindent(all), createReindent(all)]
  return (text: string, index: number, partner: number | undefined): string | undefined => {
    if (text.trim() === "") return text
    const indent = indentOf(text)
    const pair = partner === undefined ? undefined : pairs[partner]
    const known = pair && !pair.blank && pair.from === indent ? pair.to : undefined
    const found = known ?? (index === 0 ? atFirst(indent) : elsewhere(indent))
    return found === undefined ? undefined : found + text.slice(indent.length)
  }
}

/** True if the old text seems to begin after its first line's indentation: what that line shows holds there only. */
function isCutOff(first: IndentPair, rest: readonly IndentPair[]): boolean {
  return first.from === "" && first.to !== "" && createReindent(rest)("") !== first.to
}

/** The longest common sequence of lines, as pairs of indexes. */
function keptLines(old: readonly Line[], fresh: readonly Line[]): { old: number; fresh: number }[] {
  const same = (a: number, b: number) => old[a]?.text === fresh[b]?.text
  const shorter = Math.min(old.length, fresh.length)
  let head = 0
  while (head < shorter && same(head, head)) head += 1
  let tail = 0
  while (tail < shorter - head && same(old.length - 1 - tail, fresh.length - 1 - tail)) tail += 1
  const kept = Array.from({ length: head }, (_, index) => ({ old: index, fresh: index }))
  const [rows, columns] = [old.length - head - tail, fresh.length - head - tail]
  const lengths =
    rows * columns > maxComparisons ? [] : commonLengths(rows, columns, (a, b) => same(head + a, head + b))
  const at = (row: number, column: number) => lengths[row]?.[column] ?? 0
  let [row, column] = [0, 0]
  while (at(row, column) > 0) {
    if (same(head + row, head + column)) kept.push({ old: head + row++, fresh: head + column++ })
    else if (at(row + 1, column) >= at(row, column + 1)) row += 1
    else column += 1
  }
  for (let left = tail; left > 0; left--) kept.push({ old: old.length - left, fresh: fresh.length - left })
  return kept
}

/** For every pair of places, how many lines two texts still have in common from there on. */
function commonLengths(
  rows: number,
  columns: number,
  same: (row: number, column: number) => boolean,
): number[][] {
  const lengths = Array.from({ length: rows + 1 }, () => new Array<number>(columns + 1).fill(0))
  for (let row = rows - 1; row >= 0; row--) {
    const [current, below] = [lengths[row] ?? [], lengths[row + 1] ?? []]
    for (let column = columns - 1; column >= 0; column--) {
      const skip = Math.max(below[column] ?? 0, current[column + 1] ?? 0)
      current[column] = same(row, column) ? (below[column + 1] ?? 0) + 1 : skip
    }
  }
  return lengths
}
