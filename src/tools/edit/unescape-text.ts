/**
 * What was escaped once too often: everything, the quotes alone, the line ends alone, or each backslash for itself.
 */
export type EscapeForm = "escapes" | "escaped-quotes" | "escaped-line-ends" | "doubled-backslashes"

const meanings = new Map([
  ["n", "\n"],
  ["r", "\r"],
  ["t", "\t"],
  ["\\", "\\"],
  ['"', '"'],
  ["'", "'"],
  ["`", "`"],
])

const patterns: Record<EscapeForm, RegExp> = {
  escapes: /\\([nrt\\"'`])/g,
  "escaped-quotes": /\\(["'`])/g,
  "escaped-line-ends": /\\(n)/g,
  "doubled-backslashes": /\\(\\)/g,
}

/** Takes one layer of backslashes away. What is no escape stays as it is, as does one of a character in `literal`. */
export function unescapeText(text: string, form: EscapeForm, literal: readonly string[] = []): string {
  return text.replace(patterns[form], (found, character: string) =>
    literal.includes(character) ? found : (meanings.get(character) ?? found),
  )
}
