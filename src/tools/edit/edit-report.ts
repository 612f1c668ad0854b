import { TackleError } from "../../util/errors.ts"
import { type EditMatch, maxFuzzyLength, maxReplacements } from "./edit-match.ts"
import type { Unclear } from "./merge-lines.ts"
import type { Decoration, Reading } from "./readings.ts"
import { isLiteral, type Strategy } from "./strategy.ts"

/** The model sees of a loose match's diff at most so many characters. */
const maxDiffLength = 4_000

/** What each strategy looked past. */
const differences: Record<Exclude<Strategy, "exact">, string> = {
  "line-endings": "its line endings are others than the file's",
  "trailing-whitespace": "the white space at its line ends is not the file's",
  indentation: "its indentation is not the file's; new lines were shifted to the file's",
  "line-trimmed":
    "the white space around its lines is not the file's; new lines were indented as the file is",
  whitespace: "white space within its lines is not the file's",
  "look-alikes": "quotes, dashes or spaces in it are look-alikes of the file's, which were kept",
  "look-alike-lines":
    "quotes, dashes or spaces in it are look-alikes of the file's, and its white space is not the file's; both were kept",
  "block-anchors":
    "only its first and last line are the file's, those between resemble them; unchanged words were left as the file has them",
  "left-out-lines": "lines of the file are missing in it; they were left where they stand",
}

/** What was taken off both strings. */
const decorations: Record<Decoration, string> = {
  fence: "a Markdown fence stood around it",
  "line-numbers": "its lines had numbers",
  "blank-edges": "empty lines stood around it",
  entities: "it held HTML entities for characters that the file has plain",
  escapes: "it held backslash escapes for characters that the file has plain",
  "escaped-quotes": "its quotes were escaped, the file's are not",
  "escaped-line-ends": "its line ends were escaped",
  "doubled-backslashes": "its backslashes were doubled",
}

/** How an edit was found, for the result: `indentation`, or `line-numbers + indentation`, or `escapes` alone. */
export function strategyName(strategy: Strategy, { decorations }: Reading): string {
  return [...decorations, ...(isLiteral(strategy) && decorations.length > 0 ? [] : [strategy])].join(" + ")
}

/** An edit that was not made. The text says why and what to do. Codes: `edit.missing`, `edit.ambiguous`… */
export class EditError extends TackleError {
  constructor(
    why:
      | "identical"
      | "empty"
      | "missing"
      | "ambiguous"
      | "done"
      | Unclear
      | "disputed"
      | "unchanged"
      | "encoding",
    message: string,
  ) {
    super(message, { code: `edit.${why}`, recoverable: true })
  }
}

/** What the model reads of an edit that was made. `lines`: where the replaced text began, from 1. */
export function editReport(edit: {
  title: string
  strategy: Strategy
  reading: Reading
  lines: readonly number[]
  diff: string
}): string {
  const { title, strategy, reading, lines, diff } = edit
  const what = `Edited ${title}: replaced ${count(lines.length)} at ${places(lines, lines.length)}.`
  const reasons = reading.decorations.map((name) => decorations[name])
  if (strategy !== "exact") reasons.push(differences[strategy])
  if (reasons.length === 0) return what
  const both = reading.decorations.length > 0 ? " newString was read the same way." : ""
  return (
    `${what}\noldString did not match exactly (strategy "${strategyName(strategy, reading)}"): ${reasons.join("; ")}.${both} ` +
    `Check what was changed:\n${shorten(diff)}`
  )
}

/** Why nothing was replaced though the place was found, at a line from 1. */
export function unclearError(unclear: Unclear, title: string, line: number): EditError {
  const reasons: Record<Unclear, string> = {
    indentation:
      "but its indentation is not the file's, and how newString is to be indented cannot be told from it. " +
      "Nothing was changed. Copy the text with its exact indentation.",
    misquoted:
      "but words that newString changes are others in the file. " +
      "Nothing was changed. Read the lines there and copy them exactly.",
    "left-out":
      "but lines of the file are missing in it beside such as newString changes. " +
      "Nothing was changed. Copy every line from the first to the last.",
    "equal-lines":
      "but not as given, and which of its equal lines newString keeps cannot be told. " +
      "Nothing was changed. Copy the text exactly as the file has it.",
    "look-alikes":
      "but quotes, dashes or spaces in it are look-alikes of the file's, and whether those that newString adds are meant " +
      "cannot be told. Nothing was changed. Copy the text exactly and write new text with the characters you mean.",
  }
  return new EditError(unclear, `oldString was found in ${title} at line ${line}, ${reasons[unclear]}`)
}

/** Why nothing was replaced, for a text that is not there once. */
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
        `newString stands in ${title} at line ${match.line} already, and oldString only resembles other text; nothing was ` +
          "changed. If the edit is still to be made, read the file again and copy the text exactly.",
      )
    case "disputed":
      return new EditError(
        "disputed",
        `oldString was found in ${title} at line ${match.line}, but its escapes, or the empty lines around it, can be ` +
          "read in two ways, which make two different texts of newString. Nothing was changed. Copy the text exactly as " +
          "the file has it.",
      )
  }
}

function missingText(match: Extract<EditMatch, { kind: "missing" }>, title: string): string {
  const parts = [`oldString was not found in ${title}; nothing was changed.`]
  if (match.exactOnly) {
    parts.push(`The file has over ${maxFuzzyLength} characters, so only exact text was looked for.`)
  }
  if (match.nearest)
    parts.push(`The nearest text begins at line ${match.nearest.line}:\n${match.nearest.text}\n`)
  parts.push("Read that part of the file again and copy the text exactly, without the line numbers.")
  return parts.join(match.nearest ? "\n" : " ")
}

function ambiguousText(
  match: Extract<EditMatch, { kind: "ambiguous" }>,
  title: string,
  replaceAll: boolean,
): string {
  const { strategy, reading, count: number, lines } = match
  if (isLiteral(strategy) && reading.decorations.length === 0) {
    const where = `oldString occurs ${number} times in ${title}, at ${places(lines, number)}; nothing was changed.`
    if (replaceAll) return `${where} One call replaces at most ${maxReplacements}: use bash.`
    return `${where} Add lines around it until one place alone fits, or set replaceAll to change every one.`
  }
  return (
    `oldString does not stand in ${title} as given, and ${number} places resemble it, at ${places(lines, number)} ` +
    `(strategy "${strategyName(strategy, reading)}"); nothing was changed. ` +
    "Copy the text exactly from the file, with lines around it until one place alone fits."
  )
}

function places(lines: readonly number[], total: number): string {
  const named = lines.slice(0, 10)
  const more = total > named.length ? ` and ${total - named.length} more` : ""
  return `line${named.length === 1 ? "" : "s"} ${named.join(", ")}${more}`
}

function count(number: number): string {
  return number === 1 ? "one occurrence" : `${number} occurrences`
}

function shorten(diff: string): string {
  if (diff.length <= maxDiffLength) return diff
  return `${diff.slice(0, diff.lastIndexOf("\n", maxDiffLength) + 1)}[cut here; read the file for the rest]\n`
}
