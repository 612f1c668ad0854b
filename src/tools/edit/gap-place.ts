import { isSimilar } from "../../util/similarity.ts"
import { type Change, changesBetween, commonSequence } from "./common-sequence.ts"
import { isMark } from "./left-out-lines.ts"
import { type Nested, nestsWell } from "./line-nesting.ts"
import { indentOf, type Line } from "./text-lines.ts"

/** `quoted`: for each line of the file the old line that it is; undefined for one that was left out. */
export interface GapEdit {
  file: readonly Line[]
  old: readonly Line[]
  fresh: readonly Line[]
  quoted: readonly (number | undefined)[]
}

/** Places in the new text, as the index of the line that follows or takes the place. Undefined where it cannot be told. */
export interface GapPlaces {
  /** Of a mark. */
  mark(index: number): number | undefined
  /** Of what was left out between an old line and the next. */
  between(index: number): number | undefined
}

/** `fromEnd`: which of equal lines the new text is taken to keep. */
export function createGapPlaces({ file, old, fresh, quoted }: GapEdit, fromEnd: boolean): GapPlaces {
  const same = (a: number, b: number) => old[a]?.text === fresh[b]?.text
  const compared = { old: old.length, fresh: fresh.length, same, fromEnd }
  const kept = new Map(commonSequence(compared).map((pair) => [pair.old, pair.fresh]))
  const changes = changesBetween(compared)
  return {
    mark: (index) => (isMark(fresh[kept.get(index) ?? -1]?.text ?? "") ? kept.get(index) : undefined),
    between(index) {
      // Among empty lines nothing tells which of them are kept.
      if (!old[index]?.text.trim() && !old[index + 1]?.text.trim()) return undefined
      const [before, after] = [kept.get(index), kept.get(index + 1)]
      if (before !== undefined && after === before + 1) return after
      if (before === undefined && after === undefined) return undefined
      const change = changes.find(
        ({ fresh: { start, end } }) => start === (before ?? -2) + 1 || end === (after ?? -2),
      )
      if (!change) return undefined
      const { start, end } = change.fresh
      if (start === end) return start
      return besideOneLine(change, index) ?? byNesting(change, index)
    },
  }

  /** A comment stays with the line that it stands before, where the one above is changed for another alike. */
  function besideOneLine({ old: lost, fresh: added }: Change, index: number): number | undefined {
    if (lost.end - lost.start !== 1 || added.end - added.start !== 1 || lost.start !== index) return undefined
    const [from, to] = [old[lost.start]?.text.trim() ?? "", fresh[added.start]?.text.trim() ?? ""]
    return gapAfter(index).every(isWholeComment) && isSimilar(from, to) ? added.end : undefined
  }

  /** Among the new lines there is one place alone where the indentation of all of them makes sense. */
  function byNesting({ old: lost, fresh: added }: Change, index: number): number | undefined {
    const lines = fresh.slice(added.start, added.end)
    // Comments are indented as they like, and empty lines not at all.
    if (lines.some((line) => line.text.trim() === "" || isComment(line))) return undefined
    const run = lines.map((line, at) => nestedOfRun(line, lines[at + 1]))
    const above = nestedOfFile(nearestText(quoted.indexOf(lost.start - 1), -1))
    const below = nestedOfFile(nearestText(quoted.indexOf(lost.end), 1))
    const start = quoted.indexOf(index) + 1
    const gap = gapAfter(index).flatMap((_, at) => nestedOfFile(start + at) ?? [])
    if (!above || !below || gap.length < gapAfter(index).length) return undefined
    const [only, ...more] = [...run.keys(), run.length].filter((at) =>
      nestsWell([above, ...run.slice(0, at), ...gap, ...run.slice(at), below]),
    )
    return only === undefined || more.length > 0 ? undefined : added.start + only
  }

  function gapAfter(index: number): Line[] {
    const start = quoted.indexOf(index) + 1
    const next = quoted.indexOf(index + 1)
    return next === -1 ? [] : file.slice(start, next)
  }

  /** Of the file's lines with text the next from one on, down or up. */
  function nearestText(from: number, step: 1 | -1): number {
    let at = from
    while (file[at]?.text.trim() === "") at += step
    return at
  }

  function nestedOfFile(at: number): Nested | undefined {
    const [line, next] = [file[at], file.slice(at + 1).find(({ text }) => text.trim() !== "")]
    if (at < 0 || !line || line.text.trim() === "") return undefined
    const depth = indentOf(line.text).length
    return { text: line.text.trim(), depth, opens: next !== undefined && indentOf(next.text).length > depth }
  }
}

/** Of the last line its end alone tells if it opens: what follows may be what was left out. */
function nestedOfRun(line: Line, next: Line | undefined): Nested {
  const depth = indentOf(line.text).length
  const opens = next ? indentOf(next.text).length > depth : /[([{]$/.test(line.text.trimEnd())
  return { text: line.text.trim(), depth, opens }
}

function isComment({ text }: Line): boolean {
  return /^\s*(?:\/\/|#\s|--\s|\/?\*)/.test(text)
}

/** One that goes on belongs to what it goes on to. */
function isWholeComment({ text }: Line): boolean {
  return /^\s*(?:\/\/|#\s|--\s|\/\*.*\*\/$)/.test(text)
}
