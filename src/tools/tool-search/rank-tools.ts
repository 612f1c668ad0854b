import type { CatalogueEntry } from "../../tool/context.ts"

/**
 * The entries that fit words of a query, the best first. A word counts the more the fewer entries have it, so that
 * "for" and "list" decide little, and more in a name than in a description. Of equals the earlier in the catalogue comes
 * first. A word that is a tool's whole name puts it in front of all.
 */
export function rankTools(query: string, catalogue: readonly CatalogueEntry[]): CatalogueEntry[] {
  const names = new Set(query.toLowerCase().split(/[\s,]+/))
  const words = [...new Set(wordsOf(query))]
  const texts = catalogue.map((entry) => textsOf(entry))
  const fits = words.map((word) => {
    const worths = texts.map((text) => worthOf(word, text))
    const rarity = Math.log(1 + catalogue.length / worths.filter((worth) => worth > 0).length)
    return worths.map((worth) => (worth > 0 ? worth * rarity : 0))
  })
  return catalogue
    .map((entry, index) => {
      const named = names.has(entry.id.toLowerCase())
      return { entry, score: named ? Infinity : fits.reduce((sum, fit) => sum + (fit[index] ?? 0), 0) }
    })
    .filter(({ score }) => score > 0)
    .sort((a, b) => (a.score === b.score ? 0 : b.score - a.score))
    .map(({ entry }) => entry)
}

/** The words of an entry, by where they stand. */
interface Texts {
  name: string[]
  description: string[]
  parameters: string[]
}

function textsOf({ id, description, parameters }: CatalogueEntry): Texts {
  return { name: wordsOf(id), description: wordsOf(description), parameters: parameters.flatMap(wordsOf) }
}

/** What a word is worth by where it was found; 0 where it was not. */
function worthOf(word: string, { name, description, parameters }: Texts): number {
  if (name.includes(word)) return 4
  if (word.length < shortestWord) return 0
  const begins = (other: string) => other.startsWith(word) || isPluralOf(word, other)
  if (name.some(begins)) return 3
  if (description.some(begins)) return 2
  return parameters.some(begins) ? 1 : 0
}

/** Letters of a word that counts outside names, and stands for those that begin with it: "a" and "to" say nothing. */
const shortestWord = 3

/** "issues" is to find what is called "issue". */
function isPluralOf(word: string, other: string): boolean {
  return word === `${other}s`
}

/** Lower-case words of a text or name; `createIssue` and `create_issue` have two. */
function wordsOf(text: string): string[] {
  return text
    .replaceAll(/(\p{Ll})(\p{Lu})/gu, "$1 $2")
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .filter((word) => word !== "")
}
