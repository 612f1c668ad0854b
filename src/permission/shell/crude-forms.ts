import { basename } from "node:path"

/** Maximum number of possible commands per text. */
const maxForms = 8_000

/** Maximum number of words per segment that are considered as the start of a command. */
const maxWords = 24

/**
 * Returns every possible command in text that cannot be parsed. Splits the text at operators, removes quotes, and lets
 * a command start at each word. Only deny rules are matched against the results, because some of the results are not
 * commands.
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

/**
 * Returns every possible command in text that may be code in any language. Also finds the words of a list (`["git",
 * "push"]`), joined strings (`"cu" + "rl"`) and the contents of `data:` URLs. Only deny rules are matched against the
 * results. Returns undefined if the text is too long to be searched completely.
 */
export function codeForms(text: string): string[] | undefined {
  if (text.length > maxCodeLength) return undefined
  const separate = (code: string) => code.replaceAll(/[=!:"'+,[\]]/g, "\n")
  const forms = decodings(text).flatMap((code) => {
    const lists = code.replaceAll(/["']\s{0,9},\s{0,9}["']/g, " ")
    const joined = code.replaceAll(/["']\s{0,9}(?:[+.]|\.\.)?\s{0,9}["']/g, "")
    return [...new Set([code, separate(code), separate(lists), separate(joined)])].map(crudeForms)
  })
  return forms.some(({ length }) => length >= maxForms) ? undefined : [...new Set(forms.flat())]
}

/** Maximum length of code that is searched, in characters. */
const maxCodeLength = 32_768

/** Returns the text, and also its decoded form (`%20`, base64) if it contains a `data:` URL. */
export function decodings(text: string): string[] {
  if (!/data:/i.test(text)) return [text]
  const plain = text.replaceAll(/(?:%[0-9a-f]{2})+/gi, (escapes) =>
    Buffer.from(escapes.replaceAll("%", ""), "hex").toString(),
  )
  const base64 = /;base64,([\w+/=-]+)/gi
  const decoded = [...plain.matchAll(base64)].map(([, data = ""]) => Buffer.from(data, "base64").toString())
  return [text, plain, decoded.join("\n")]
}
