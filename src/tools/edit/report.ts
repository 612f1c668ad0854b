import { TackleError } from "../../util/errors.ts"
import type { Unclear } from "./apply-edit.ts"
import { countLimit, type EditMatch, isPlain, maxFuzzyLength, maxReplacements } from "./find-edit.ts"
import type { Decoration, Reading } from "./readings.ts"
import type { StrategyName } from "./strategies.ts"

/**
 * Thrown if an edit is not applied. The code consists of `edit.` and the reason, such as `edit.missing`.
 */
export class EditError extends TackleError {
  constructor(
    why: "identical" | "empty" | "missing" | "ambiguous" | "done" | Unclear | "disputed" | "unchanged",
    message: string,
  ) {
    super(message, { code: `edit.${why}`, recoverable: true })
  }
}

/**
 * Returns the name of the method that found the old text, such as `normalized-lines`, `line-numbers + normalized-lines`
 * or `escapes`.
 */
export function strategyName(strategy: StrategyName, reading: Reading): string {
  const isLiteral = isPlain(strategy, { ...reading, decorations: [] })
  const names = isLiteral && reading.decorations.length > 0 ? [] : [strategy]
  return [...reading.decorations, ...names].join(" + ")
}

/** Descriptions of the differences that each strategy ignores. */
const differences: Record<Exclude<StrategyName, "exact">, string> = {
  "line-endings": "its line endings differ from those in the file",
  "look-alikes": "its quotes, dashes or spaces are look-alikes of those in the file, which were kept",
  "normalized-lines":
    "its white space, quotes or dashes differ from those in the file, which were kept; new lines were indented as in the file",
  "block-anchors":
    "some lines between its first and last lines are only similar to those in the file; unchanged words were kept as they are in the file",
  "left-out-lines": "it leaves out lines of the file, which were kept",
}

/** Descriptions of the decorations that were removed from both texts. */
const removed: Record<Decoration, string> = {
  fence: "it had a Markdown fence",
  "line-numbers": "it had line numbers",
  "blank-edges": "it had blank lines around it",
  entities: "it had HTML entities",
  escapes: "it had extra backslash escapes",
  "escaped-quotes": "its quotes were escaped",
  "escaped-line-ends": "its line endings were escaped",
  "escaped-line-ends-outside-strings": "its line endings were escaped",
  "doubled-backslashes": "its backslashes were doubled",
}

/** Maximum length of the diff shown to the model after an inexact match, in characters. */
const maxDiffLength = 4_000

/** Returns the result for the model. `lines` contains the line numbers, from 1, at which the replaced text began. */
export function editReport(edit: {
  title: string
  strategy: StrategyName
  reading: Reading
  lines: readonly number[]
  diff: string
}): string {
  const { title, strategy, reading, lines, diff } = edit
  const number = lines.length === 1 ? "one occurrence" : `${lines.length} occurrences`
  const summary = `Edited ${title}: replaced ${number} at ${locations(lines, lines.length)}.`
  const reasons = reading.decorations.map((name) => removed[name])
  if (strategy !== "exact") reasons.push(differences[strategy])
  if (reasons.length === 0) return summary
  const both = reading.decorations.length > 0 ? " newString was corrected in the same way if necessary." : ""
  return (
    `${summary}\noldString did not match exactly (strategy "${strategyName(strategy, reading)}"): ${reasons.join("; ")}.${both} ` +
    `Check the change:\n${shorten(diff)}`
  )
}

/** Returns the error for an edit whose location is known but whose result is unclear. `line` counts from 1. */
export function unclearError(unclear: Unclear, title: string, line: number): EditError {
  const reasons: Record<Unclear, string> = {
    indentation:
      "but its indentation differs, and the indentation of newString is unclear. " +
      "Nothing was changed. Copy the text with its exact indentation.",
    misquoted:
      "but some of the words that newString changes differ between oldString and the file. " +
      "Nothing was changed. Read the lines again and copy them exactly.",
    "left-out":
      "but it omits lines of the file, and their position in newString is unclear. " +
      "Nothing was changed. Copy every line from the first to the last.",
    "equal-lines":
      "but does not match exactly, and it is unclear which of several equal lines newString keeps. " +
      "Nothing was changed. Copy the text exactly.",
    "look-alikes":
      "but with look-alike quotes, dashes or spaces, and it is unclear which form of these characters newString should contain. " +
      "Nothing was changed. Copy the text exactly, and write new text with the characters you intend.",
  }
  return new EditError(unclear, `oldString was found in ${title} at line ${line}, ${reasons[unclear]}`)
}

/**
 * Returns the error for a match that cannot be applied: its old text is missing, ambiguous, already replaced or
 * disputed.
 */
export function matchError(
  match: Exclude<EditMatch, { kind: "found" }>,
  title: string,
  replaceAll: boolean,
): EditError {
  switch (match.kind) {
    case "missing":
      return new EditError("missing", missingText(match, title))
    case "ambiguous":
      return new EditError("ambiguous", ambiguousText(match, title, replaceAll))
    case "done":
      return new EditError(
        "done",
        `${title} already contains newString at line ${match.line}, and oldString was not found. Nothing was changed. ` +
          "If the edit is still needed, read the file again and copy the text exactly.",
      )
    case "disputed":
      return new EditError(
        "disputed",
        `oldString was found in ${title} at line ${match.line}, but its escape sequences, or blank lines at its ` +
          "beginning or end, make it unclear what newString should be. Nothing was changed. Copy the text exactly.",
      )
  }
}

function missingText(match: Extract<EditMatch, { kind: "missing" }>, title: string): string {
  const parts = [`oldString was not found in ${title}. Nothing was changed.`]
  if (match.exactOnly) {
    parts.push(`In files of more than ${maxFuzzyLength} characters, only exact text is found.`)
  }
  if (match.nearest)
    parts.push(`The most similar text begins at line ${match.nearest.line}:\n${match.nearest.text}\n`)
  const where = match.nearest ? "that part of the file" : "the file"
  parts.push(`Read ${where} again and copy the text exactly, without line numbers.`)
  return parts.join(match.nearest ? "\n" : " ")
}

function ambiguousText(
  match: Extract<EditMatch, { kind: "ambiguous" }>,
  title: string,
  replaceAll: boolean,
): string {
  const { strategy, reading, count, lines } = match
  const bound = count < countLimit(replaceAll) ? "" : "at least "
  const where = locations(lines, count, bound)
  if (isPlain(strategy, reading)) {
    const found = `oldString occurs ${bound}${count} times in ${title}, at ${where}. Nothing was changed.`
    if (replaceAll)
      return `${found} One call replaces at most ${maxReplacements} occurrences. Use bash instead.`
    return `${found} Add surrounding lines until oldString is unique, or set replaceAll to change every occurrence.`
  }
  return (
    `oldString does not occur exactly in ${title}, but ${bound}${count} places resemble it, at ${where} ` +
    `(strategy "${strategyName(strategy, reading)}"). Nothing was changed. ` +
    "Copy the text exactly, with enough surrounding lines to make it unique."
  )
}

function locations(lines: readonly number[], total: number, bound = ""): string {
  const shown = lines.slice(0, 10)
  const named = [...new Set(shown)]
  const more = total > shown.length ? ` and ${bound}${total - shown.length} more` : ""
  return `line${named.length === 1 ? "" : "s"} ${named.join(", ")}${more}`
}

function shorten(diff: string): string {
  if (diff.length <= maxDiffLength) return diff
  return `${diff.slice(0, diff.lastIndexOf("\n", maxDiffLength) + 1)}[The diff is cut here. Read the file to see all changes.]\n`
}
