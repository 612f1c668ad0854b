import { basename } from "node:path"

/** Maximum number of possible commands per text. */
const maxForms = 2_000

/** Maximum number of words per segment at which a command may start. */
const maxWords = 24

/**
 * Returns every possible command in a text that cannot be parsed. Splits the text at operators, removes quotes, and
 * lets a command start at each word. Only deny rules match the results, because some of them are not commands.
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
