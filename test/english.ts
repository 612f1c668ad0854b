import { readFileSync } from "node:fs"
import jsTokens from "js-tokens"

/** A stretch of prose in a file: a comment, a string literal or a line of Markdown. */
export interface Prose {
  line: number
  text: string
}

/** A place where the style guide asks for another word. */
export interface Finding {
  line: number
  found: string
  use: string
}

/** Replacements, by the words that no comment, message or page may contain. */
const words: readonly [RegExp, string][] = [
  [/\bpersons?\b/i, "user"],
  [/\bwhoever\b|\bsomebody\b/i, "user, caller, or the name of the part"],
  [/\bnobody\b/i, "no user, no caller, nothing"],
  [/\banew\b/i, "again"],
  [/(?<!look-)\balike\b/i, "the same way, both"],
  [/\bof (its|their) own accord\b/i, "by itself"],
  [/\bshall\b/i, "must, will"],
  [/\bmend(s|ed|ing)?\b/i, "repair, fix"],
  [/\bgo(es|ing)? on\b|\bwent on\b/i, "continue, resume"],
  [/(?<!\bthere )\bis no [a-z-]+[.:,;]|\bthere (is|are|was|were) (none|nobody)\b/i, "is not, does not exist"],
  [/\bso many of\b/i, "N of"],
  [/\bstands? (there|beside|for itself|behind|under|by itself)\b/i, "is, is contained in"],
  [/\b(is|are|was|were) told\b|\btold of\b|\btells? of\b/i, "receives, reports, shows"],
  [/\bby (its|their) words?\b/i, "says, reports"],
  [/\bturnstile\b|\blone calls?\b|\bliving server\b|\bwithheld\b|\blacking\b|\bledger\b/i, "a glossary word"],
  [/\b(process|record|token|pin|grant|placeholder|temporary|document|diagnostic) book\b/i, "journal, store"],
  [/\bpatience\b/i, "idle timeout"],
  [/\bgreet(s|ed)\b/i, "connect, handshake"],
  [/\b(ask|asks|asked|asking) (for )?leave\b|\bleave (was|is) given\b|\bgives? leave\b/i, "permission"],
  [/\bfaults?\b(?! tolera)/i, "error, warning, problem"],
  [/\btaken apart\b|\btakes? apart\b/i, "parse, split"],
  [/\bput (down )?to death\b|\bbesides which\b|\bthereof\b|\bwherein\b|\bhence\b|\bthus\b/i, "so, therefore"],
  [/\bin vain\b|\bnot a word\b|\bby name of\b|\bin (its|their|his|her) stead\b/i, "without effect, instead"],
]

/** Openings of sentences that read as translated. */
const openings = /^(Those|What|Whoever|Whatever|So many|Where nobody)\b(?!.*\?\s*$)/

/** The files whose prose is checked. Fixtures and corpora contain other people's texts. */
export const checkedFiles = [
  "{README,ARCHITECTURE,CONTRIBUTING,CHANGELOG}.md",
  "docs/**/*.md",
  "{src,scripts,bench}/**/*.{ts,md,mjs}",
  "test/!(fixtures|corpus)/**/*.ts",
  "test/!(english*).ts",
  "examples/**/*.{ts,md}",
]

/** Checks the comments and texts of one file. */
export function checkFile(file: string): Finding[] {
  const text = readFileSync(file, "utf8")
  if (file.endsWith(".md")) return findings(paragraphsOf(text), { sentences: true })
  return [
    ...findings(commentsOf(text), { sentences: true }),
    ...findings(stringsOf(text), { sentences: false }),
  ].toSorted((a, b) => a.line - b.line)
}

/** Reports the words and sentence openings that the style guide replaces. */
export function findings(prose: readonly Prose[], options: { sentences: boolean }): Finding[] {
  return prose.flatMap(({ line, text }) => {
    const found: Finding[] = []
    for (const [pattern, use] of words) {
      const match = pattern.exec(text)
      if (match) found.push({ line, found: match[0], use })
    }
    if (options.sentences)
      for (const sentence of sentencesOf(text)) {
        const match = openings.exec(sentence)
        if (match) found.push({ line, found: `${sentence.slice(0, 40)}…`, use: "subject first" })
      }
    return found
  })
}

/** Returns the comments of a source file, each as one text on the line where it starts. */
export function commentsOf(source: string): Prose[] {
  return tokens(source).flatMap(({ type, value, line }) => {
    if (type === "MultiLineComment") {
      const text = value.replace(/^\/\*+|\*\/$/g, "").replace(/^[ \t]*\* ?/gm, "")
      return [{ line, text: text.replace(/\s+/g, " ").trim() }]
    }
    return type === "SingleLineComment" ? [{ line, text: value.replace(/^\/\/\s*/, "") }] : []
  })
}

/** Returns the string literals and template parts of a source file that contain a space: messages, not names. */
function stringsOf(source: string): Prose[] {
  return tokens(source).flatMap(({ type, value, line }) => {
    const isText =
      type === "StringLiteral" || type.startsWith("Template") || type === "NoSubstitutionTemplate"
    return isText && /\w \w/.test(value) ? [{ line, text: value }] : []
  })
}

/** Returns the paragraphs of a Markdown page, without code. */
function paragraphsOf(page: string): Prose[] {
  const prose: Prose[] = []
  let fenced = false
  page.split("\n").forEach((text, index) => {
    if (/^\s*(```|~~~)/.test(text)) fenced = !fenced
    else if (!fenced && text.trim() !== "")
      prose.push({ line: index + 1, text: text.replace(/`[^`]*`/g, "`code`") })
  })
  return prose
}

function tokens(source: string) {
  let line = 1
  return [...jsTokens(source)].map(({ type, value }) => {
    const token = { type: type as string, value, line }
    line += value.split("\n").length - 1
    return token
  })
}

/** Splits text into sentences. Code in backticks is not prose. */
function sentencesOf(text: string): string[] {
  return text.replace(/`[^`]*`/g, "`code`").split(/(?<=[.:!?])\s+(?=[A-Z`])/)
}
