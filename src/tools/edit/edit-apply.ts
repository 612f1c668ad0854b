import type { EditMatch } from "./edit-match.ts"
import { fillGaps } from "./fill-gaps.ts"
import { indentUnit } from "./indent-unit.ts"
import { createFileForms } from "./look-alikes.ts"
import { type Merged, mergeLines } from "./merge-lines.ts"
import { mergeWords } from "./merge-words.ts"
import type { Span } from "./spans.ts"
import type { Strategy } from "./strategy.ts"
import { coversLines, eolFinder, type Line, splitLines, toLf } from "./text-lines.ts"

/** A text and what is to be changed in it. */
export interface Edit {
  text: string
  match: Extract<EditMatch, { kind: "found" }>
}

/**
 * The text after the edit; not one character outside of the spans differs. Line endings of the new text become those
 * of the place. Where the old text was not exact, the new one is adapted in the same way: shifted, its unchanged lines,
 * words and characters left as the file has them. `unclear` where what is to stand there cannot be known.
 */
export function applyEdit({ text, match }: Edit): Merged {
  const { strategy, reading, spans } = match
  const eolAt = eolFinder(text)
  const replace = replacer(strategy, text, { old: toLf(reading.oldString), fresh: toLf(reading.newString) })
  const pieces: string[] = []
  let end = 0
  for (const span of spans) {
    const replacement = replace(span, eolAt(span) ?? firstEol(reading.newString))
    if ("unclear" in replacement) return replacement
    pieces.push(text.slice(end, span.start), replacement.text)
    end = span.end
  }
  pieces.push(text.slice(end))
  return { text: pieces.join("") }
}

/** A file of one line has no line ending to take over: the new text brings its own. */
function firstEol(newString: string): string {
  return /\r\n|[\n\r]/.exec(newString)?.[0] ?? "\n"
}

type Replace = (span: Span, eol: string) => Merged

/** `wanted`: the texts of the edit, their lines ended by `\n`. */
function replacer(strategy: Strategy, text: string, wanted: { old: string; fresh: string }): Replace {
  switch (strategy) {
    case "exact":
      return (_, eol) => ({ text: wanted.fresh.replaceAll("\n", eol) })
    case "line-endings": {
      const byLines = lineReplacer(strategy, text, wanted)
      return (span, eol) =>
        coversLines(text, span) && hasMixedEndings(text.slice(span.start, span.end))
          ? byLines(span, eol)
          : { text: wanted.fresh.replaceAll("\n", eol) }
    }
    case "look-alikes": {
      const byLines = lineReplacer(strategy, text, wanted)
      const byWords = wordReplacer(text, wanted)
      return (span, eol) => (coversLines(text, span) ? byLines(span, eol) : byWords(span, eol))
    }
    default:
      return lineReplacer(strategy, text, wanted)
  }
}

/** For a piece that may begin and end within lines. */
function wordReplacer(text: string, wanted: { old: string; fresh: string }): Replace {
  return ({ start, end }, eol) => {
    const pair = { file: text.slice(start, end), old: wanted.old }
    const inFileForms = createFileForms([pair], (character) => text.includes(character))
    const inPlace = (fresh: string) => inFileForms(fresh)?.replaceAll("\n", eol)
    return mergeWords({ ...pair, fresh: wanted.fresh, inFileForms: inPlace })
  }
}

function lineReplacer(strategy: Strategy, text: string, wanted: { old: string; fresh: string }): Replace {
  const [old, fresh] = [splitLines(wanted.old), splitLines(wanted.fresh)]
  let unit: { width: number | undefined } | undefined
  const isUsed = (character: string) => text.includes(character)
  return ({ start, end }, eol) => {
    const file = spanLines(text.slice(start, end), old)
    const whole = strategy === "left-out-lines" ? fillGaps({ file, old, fresh }) : { old, fresh }
    if (!whole) return { unclear: "left-out" }
    // Found out once, and only where lines are compared at all: the text may be large.
    unit ??= { width: indentUnit(splitLines(text)) }
    return mergeLines({ file, old: whole.old, new: whole.fresh, eol, unit: unit.width, isUsed })
  }
}

/** Then each line that is kept has to keep its own. */
function hasMixedEndings(span: string): boolean {
  return new Set(span.match(/\r\n|[\n\r]/g)).size > 1
}

/** The lines of a span that covers whole lines. An empty last line, which `old` has spaces for, counts too. */
function spanLines(span: string, old: readonly Line[]): Line[] {
  const lines = splitLines(span)
  const isCut = old.at(-1)?.eol === "" && (span === "" || lines.at(-1)?.eol !== "")
  return isCut ? [...lines, { text: "", eol: "", start: span.length }] : lines
}
