import type { EditMatch, Span, Strategy } from "./edit-match.ts"
import { replaceLookAlikes } from "./look-alikes.ts"
import { mergeLines } from "./merge-lines.ts"
import { eolFinder, splitLines, toLf } from "./text-lines.ts"
import { unescapeText } from "./unescape-text.ts"

/** Text that is to take the place of what was found. */
export interface Edit {
  text: string
  match: Extract<EditMatch, { kind: "found" }>
  oldString: string
  newString: string
}

/**
 * The text after the edit; not one character outside of the spans differs. Line endings of the new text become those
 * of the place. Where the old text was not exact, the new one is adapted in the same way: shifted, unescaped, its
 * unchanged lines and characters left as the file has them. Undefined where the file's indentation for a new line
 * cannot be known.
 */
export function applyEdit({ text, match, oldString, newString }: Edit): string | undefined {
  const eolAt = eolFinder(text)
  const replace = replacer(match.strategy, text, oldString, toLf(newString))
  const pieces: string[] = []
  let end = 0
  for (const span of match.spans) {
    const replacement = replace(span, eolAt(span) ?? firstEol(newString))
    if (replacement === undefined) return undefined
    pieces.push(text.slice(end, span.start), replacement)
    end = span.end
  }
  pieces.push(text.slice(end))
  return pieces.join("")
}

/** A file of one line has no line ending to take over: the new text brings its own. */
function firstEol(newString: string): string {
  return /\r\n|[\n\r]/.exec(newString)?.[0] ?? "\n"
}

type Replace = (span: Span, eol: string) => string | undefined

function replacer(strategy: Strategy, text: string, oldString: string, newText: string): Replace {
  switch (strategy) {
    case "exact":
    case "line-endings":
      return (_, eol) => newText.replaceAll("\n", eol)
    case "escapes":
    case "escaped-quotes": {
      const plain = toLf(unescapeText(newText, strategy))
      return (_, eol) => plain.replaceAll("\n", eol)
    }
    case "look-alikes":
      return ({ start, end }, eol) =>
        replaceLookAlikes({
          file: text.slice(start, end),
          oldText: toLf(oldString),
          newText,
          eol,
          isUsed: (character) => text.includes(character),
        })
    default: {
      const [old, fresh] = [splitLines(toLf(oldString)), splitLines(newText)]
      return ({ start, end }, eol) =>
        mergeLines({ file: splitLines(text.slice(start, end)), old, new: fresh, eol })
    }
  }
}
