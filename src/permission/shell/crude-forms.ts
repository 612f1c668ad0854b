import { basename } from "node:path"

/** So many spellings of one text are tried at most. */
const maxForms = 2_000

/** A command starts rarely more words into a piece than this. */
const maxWords = 24

/**
 * Everything in a text that may be a command, for a text whose grammar is not understood: pieces between operators,
 * without quotes, from each word on. For denies alone, since some of it will be no command at all.
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
