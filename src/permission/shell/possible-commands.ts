import { basename } from "node:path"
import { maxWrapperWords } from "./risks.ts"
import { joinWords, type Word } from "./words.ts"

/** Maximum number of possible commands per text. */
const maxForms = 8_000

/** Maximum number of words per segment that are considered as the start of a command. */
const maxWords = 24

/**
 * Returns the possible commands in text that cannot be parsed, up to a limit. Splits the text at operators, removes
 * quotes, and lets a command start at each word. Only deny rules are matched against the results, because some of the
 * results are not commands.
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
 * results. Returns undefined if the text is too long or contains too many possible commands to be searched completely.
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

/**
 * Returns the text. If it contains a `data:` URL, also returns the text with decoded percent escapes, and the decoded
 * base64 data.
 */
export function decodings(text: string): string[] {
  if (!/data:/i.test(text)) return [text]
  const plain = text.replaceAll(/(?:%[0-9a-f]{2})+/gi, (escapes) =>
    Buffer.from(escapes.replaceAll("%", ""), "hex").toString(),
  )
  const base64 = /;base64,([\w+/=-]+)/gi
  const decoded = [...plain.matchAll(base64)].map(([, data = ""]) => Buffer.from(data, "base64").toString())
  return [text, plain, decoded.join("\n")]
}

/** Returns every command that may start at one of the words or be contained in one of them. */
export function possibleCommands(words: readonly Word[]): string[] {
  return [
    ...tails(words),
    ...words.flatMap(({ text }) => withoutLetters(text).flatMap((each) => codeForms(each) ?? [])),
  ]
}

/** Returns texts that may contain a command: the text, and the possible values of short options at its start. */
function withoutLetters(text: string): string[] {
  if (!/[\s;&|]/.test(text)) return []
  const letters = /^-[A-Za-z]+/.exec(text)?.[0].length ?? 0
  return [text, ...Array.from({ length: Math.min(letters, maxLetters) }, (_, at) => text.slice(at + 2))]
}

/** Maximum number of letters of short options before a command. */
const maxLetters = 8

/**
 * Returns the suffixes that start at one of the first {@link maxWrapperWords} words. An unknown wrapper may run one of
 * these suffixes as a command.
 */
export function tails(words: readonly Word[]): string[] {
  const forms: string[] = []
  for (let from = 0; from < Math.min(words.length, maxWrapperWords); from++) {
    const [program, ...rest] = words.slice(from)
    if (!program) continue
    forms.push(joinWords([program, ...rest]))
    if (program.text.includes("/"))
      forms.push(joinWords([{ ...program, text: basename(program.text) }, ...rest]))
  }
  return forms
}
