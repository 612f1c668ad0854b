import { commonSequence, indentOf, isBlank, type Line } from "./text.ts"

/** The lines of an edit. `file` and `old` correspond line by line. */
export interface LineTexts {
  file: readonly Line[]
  old: readonly Line[]
  fresh: readonly Line[]
}

/** The text whose indentation the new text follows. */
export type IndentFrame = "old" | "file"

/**
 * Decides which indentation the new text follows: first by the lines that it keeps from the old text, then by the least
 * indentation of each text. Returns undefined if the texts do not determine the indentation.
 */
export function indentFrame(edit: LineTexts): IndentFrame | undefined {
  const { file, old, fresh } = edit
  const own = (index: number) => indentOf(file[index]?.text ?? "")
  if (old.every((line, index) => isBlank(line) || indentOf(line.text) === own(index))) return "old"
  const [inOld, inFile, inFresh] = [leastIndent(old), leastIndent(file), leastIndent(fresh)]
  const votes = new Set(
    keptIndents(old, fresh).map(({ old: at, from, to }) => vote({ from, to, file: own(at) })),
  )
  votes.delete(undefined)
  const isMoved = votes.delete("moved")
  const [only, ...more] = votes
  if (inFresh === undefined) return "old"
  if (inFresh === inOld && mayBeCutOff({ old, fresh, inFile: inFile ?? "" })) return undefined
  const first = firstVote(edit)
  if (first !== undefined) return first
  // If one kept line has moved, another kept line may match the file's indentation only because it has moved too.
  if (isMoved && votes.has("file")) return undefined
  if (more.length === 0 && only === "old") return only
  // A new block around kept lines can shift these lines to the file's indentation by chance, but then the text still
  // has the indentation step of the old text.
  if (only === "file" && stepsAsOld(edit)) return undefined
  if (more.length === 0 && only === "file" && inFresh.length >= (inFile ?? "").length) return only
  if (inOld === inFile) return more.length > 0 || only === "file" ? undefined : "old"
  if (inFresh === inOld) return "old"
  return inFresh === inFile && more.length === 0 ? "file" : undefined
}

/** Returns true if the new text has the indentation step of the old text and not that of the file. */
function stepsAsOld({ file, old, fresh }: LineTexts): boolean {
  const step = leastStep(fresh)
  return step !== undefined && step === leastStep(old) && step !== leastStep(file)
}

/**
 * Returns true if the old text is a single line that may be quoted without its indentation. In this case, additional
 * new lines may have the file's indentation, or may also lack it.
 */
function mayBeCutOff(edit: { old: readonly Line[]; fresh: readonly Line[]; inFile: string }): boolean {
  const [old, [first, ...rest]] = [withText(edit.old), withText(edit.fresh)]
  const deep = ({ text }: Line) => indentOf(text) === "" || indentOf(text).length >= edit.inFile.length
  return old.length === 1 && rest.length > 0 && first?.text.trimStart() === first?.text && rest.every(deep)
}

function withText(lines: readonly Line[]): Line[] {
  return lines.filter((line) => !isBlank(line))
}

function keptIndents(old: readonly Line[], fresh: readonly Line[]) {
  const text = (line: Line | undefined) => line?.text.trim()
  const same = (a: number, b: number) => text(old[a]) === text(fresh[b]) && text(old[a]) !== ""
  return commonSequence({ old: old.length, fresh: fresh.length, same }).map((pair) => ({
    old: pair.old,
    from: indentOf(old[pair.old]?.text ?? ""),
    to: indentOf(fresh[pair.fresh]?.text ?? ""),
  }))
}

/**
 * Returns the text whose indentation a kept line follows, "moved" if the line follows neither text, or undefined if
 * both texts indent the line equally.
 */
function vote(indents: { from: string; to: string; file: string }): IndentFrame | "moved" | undefined {
  if (indents.from === indents.file) return undefined
  if (indents.to === indents.from) return "old"
  return indents.to === indents.file ? "file" : "moved"
}

/**
 * Returns the vote of the first line if both texts begin with the same line. In this case, no new block surrounds the
 * line.
 */
function firstVote(edit: LineTexts): IndentFrame | undefined {
  const [file, old, fresh] = [edit.file, edit.old, edit.fresh].map((lines) => withText(lines)[0]?.text)
  if (file === undefined || old === undefined || old.trim() !== fresh?.trim()) return undefined
  const voted = vote({ from: indentOf(old), to: indentOf(fresh), file: indentOf(file) })
  return voted === "moved" ? undefined : voted
}

function leastIndent(lines: readonly Line[]): string | undefined {
  const [first, ...rest] = withText(lines).map((line) => indentOf(line.text))
  return rest.reduce(
    (best, indent) => (best !== undefined && best.length <= indent.length ? best : indent),
    first,
  )
}

/** Maximum width of a level, in characters. Wider steps are alignment, not levels. */
const maxUnit = 8

/** Returns the most frequent width of one level, in characters, or undefined if the lines have no levels. */
export function indentUnit(lines: readonly Line[]): number | undefined {
  const counts = new Map<number, number>()
  const widths = withText(lines).map(({ text }) => indentOf(text).length)
  for (const [index, width] of widths.slice(1).entries()) {
    const step = width - (widths[index] ?? width)
    if (step > 0 && step <= maxUnit) counts.set(step, (counts.get(step) ?? 0) + 1)
  }
  const [best] = [...counts].sort(([a, times], [b, others]) => others - times || a - b)
  return best?.[0]
}

/**
 * Returns the smallest indentation step between adjacent lines that are not blank, in characters. A step of one
 * character, which may be alignment, counts only if no step is larger. Returns undefined if there are no steps.
 */
export function leastStep(lines: readonly Line[]): number | undefined {
  const widths = withText(lines).map(({ text }) => indentOf(text).length)
  const steps = widths.slice(1).map((width, index) => Math.abs(width - (widths[index] ?? width)))
  const levels = steps.filter((step) => step > 1 && step <= maxUnit)
  return levels.length > 0 ? Math.min(...levels) : indentUnit(lines)
}

/** The indentation of one line in the model's text and in the file. */
export interface IndentPair {
  from: string
  to: string
}

/**
 * Learns the file's indentation from known lines. Returns a function that translates an indentation in the model's
 * text. The function returns undefined if the known lines do not determine the result, because a guess could change the
 * meaning of a program. `scale` is the width of the file's levels relative to the width of the model's levels, if
 * known.
 */
export function createReindent(
  pairs: readonly IndentPair[],
  { scale }: { scale?: number } = {},
): (indent: string) => string | undefined {
  const known = new Map<string, string>()
  const unclear = new Set<string>()
  for (const { from, to } of pairs) {
    if ((known.get(from) ?? to) !== to) unclear.add(from)
    known.set(from, to)
  }
  for (const from of unclear) known.delete(from)
  if (unclear.size === 0 && [...known].every(([from, to]) => from === to)) return (indent) => indent
  const levels = [...known].map(([from, to]) => ({ from, to })).sort((a, b) => a.from.length - b.from.length)
  const step = stepOf(levels)
  if (step && !isLikely(step, levels, scale)) return (indent) => known.get(indent)
  return (indent) => {
    if (unclear.has(indent)) return undefined
    return known.get(indent) ?? (step && derive(indent, levels, step))
  }
}

/**
 * Returns true if the levels change between tabs and spaces, are shifted, are scaled by the known scale, or are scaled
 * from the margin. A single level is consistent with both shifting and scaling.
 */
function isLikely(step: Step, levels: readonly IndentPair[], scale: number | undefined): boolean {
  if (step.from !== step.to) return true
  const [level, ...more] = levels
  if (!level) return true
  if (more.length === 0) return scale === 1 || level.from === "" || level.to === ""
  return step.ratio === 1 || step.ratio === scale || level.to.length === level.from.length * step.ratio
}

/** A rule that translates deeper indentation: each character `from` becomes `ratio` characters `to`. */
interface Step {
  from: string
  to: string
  ratio: number
}

/** Returns the step that explains all differences between the known levels. */
function stepOf(levels: readonly IndentPair[]): Step | undefined {
  const steps = levels.slice(1).map((level, index) => stepBetween(levels[index], level))
  const [first, ...more] = steps.length > 0 ? steps : [stepOfOne(levels[0])]
  if (!first) return undefined
  const same = (step: Step | undefined) =>
    step?.from === first.from && step.to === first.to && step.ratio === first.ratio
  return more.every(same) ? first : undefined
}

function stepBetween(shallow: IndentPair | undefined, deep: IndentPair): Step | undefined {
  if (!shallow || !deep.from.startsWith(shallow.from) || !deep.to.startsWith(shallow.to)) return undefined
  return toStep(deep.from.slice(shallow.from.length), deep.to.slice(shallow.to.length))
}

/**
 * Returns the step of a single level: a scaled step if the level changes between tabs and spaces, and otherwise a
 * shifted step.
 */
function stepOfOne(level: IndentPair | undefined): Step | undefined {
  if (!level) return undefined
  const [from, to] = [characterOf(level.from), characterOf(level.to)]
  if (from && to && from !== to) return toStep(level.from, level.to)
  const character = from ?? to
  return character === undefined ? undefined : { from: character, to: character, ratio: 1 }
}

function toStep(from: string, to: string): Step | undefined {
  const [own, other] = [characterOf(from), characterOf(to)]
  return own && other ? { from: own, to: other, ratio: to.length / from.length } : undefined
}

/** Returns the only character of an indentation, or undefined if the indentation is empty or mixed. */
function characterOf(indent: string): string | undefined {
  const [first] = indent
  return first !== undefined && indent === first.repeat(indent.length) ? first : undefined
}

function derive(indent: string, levels: readonly IndentPair[], step: Step): string | undefined {
  const shallower = levels.findLast((level) => indent.startsWith(level.from))
  if (shallower) {
    const more = translate(indent.slice(shallower.from.length), step)
    return more === undefined ? undefined : shallower.to + more
  }
  const deeper = levels.find((level) => level.from.startsWith(indent))
  const less = deeper && translate(deeper.from.slice(indent.length), step)
  if (less === undefined || !deeper?.to.endsWith(less)) return undefined
  return deeper.to.slice(0, deeper.to.length - less.length)
}

function translate(indent: string, step: Step): string | undefined {
  const count = indent.length * step.ratio
  return characterOf(indent) === step.from && Number.isInteger(count) ? step.to.repeat(count) : undefined
}
