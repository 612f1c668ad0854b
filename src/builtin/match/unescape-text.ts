/** `escapes`: everything that was escaped once too often, or the quotes alone. */
export type EscapeForm = "escapes" | "escaped-quotes"

const meanings = new Map([
  ["n", "\n"],
  ["r", "\r"],
  ["t", "\t"],
  ["\\", "\\"],
  ['"', '"'],
  ["'", "'"],
  ["`", "`"],
])

const patterns: Record<EscapeForm, RegExp> = { escapes: /\\([nrt\\"'`])/g, "escaped-quotes": /\\(["'`])/g }

/** Takes one layer of backslashes away. What is no escape stays as it is. */
export function unescapeText(text: string, form: EscapeForm): string {
  return text.replace(patterns[form], (found, character: string) => meanings.get(character) ?? found)
}
