import { basename } from "node:path"

/** The maximum number of spellings of one text. */
const maxForms = 2_000

/** Number of words of a piece, from its start, that are tried as the start of a command. */
const maxWords = 24

/**
 * Returns everything that may be a command in a text that cannot be parsed: the pieces between operators, without
 * quotes, from each word on. Only deny rules match these, since some are not commands.
 */
export function crudeForms(text: string): string[] {
  const forms = new Set<string>()
  const pieces = text.replaceAll("\\\n", "").split(/[\n;&|(){}<>`]/)
  for (const piece of pieces) {
    const words = piece
      .replaceAll(/\$?["']|\\/g, "")
      .split(/[\s\p{Cc}]+/u)
      .filter(Boolean)
    for (let from = 0; from < Math.min(words.length, maxWords); from++) {
      if (forms.size >= maxForms) return [...forms]
      const [program = "", ...rest] = words.slice(from)
      forms.add([program, ...rest].join(" "))
      forms.add([basename(program), ...rest].join(" "))
    }
  }
  return [...forms]
}
