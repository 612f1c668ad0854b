import * as z from "zod"
import type { CatalogueEntry } from "../tool/context.ts"
import { define } from "../tool/tool.ts"
import { TackleError } from "../util/errors.ts"
import { readText } from "../util/file-system.ts"
import { counted } from "../util/words.ts"

/** Id of the `tool_search` tool. */
export const toolSearchId = "tool_search"

const parameters = z.lazy(() =>
  z.object({
    query: z
      .string()
      .trim()
      .min(1)
      .max(2_000)
      .describe("Words that describe the tool, or its name; select:a,b picks tools by name"),
    limit: z
      .number()
      .int()
      .min(1)
      .max(20)
      .default(5)
      .describe("Maximum number of results for a search by words"),
  }),
)

/**
 * Maximum number of characters shown per description. The next step offers each tool with its full description.
 */
const shownLength = 160

/**
 * Searches the tools that are not offered yet. The session offers the tools in `metadata.found` from the next step on.
 */
export const toolSearchTool = define(toolSearchId, {
  description: readText(new URL("./tool-search.md", import.meta.url)),
  parameters,
  access: "read",
  async execute({ query, limit }, ctx) {
    const { catalogue } = ctx
    if (!catalogue)
      throw new TackleError("All tools are already offered, so there is nothing to search for.", {
        code: "tool-search.unavailable",
        recoverable: true,
      })
    const { found, unknown } = query.startsWith(selectPrefix)
      ? select(query.slice(selectPrefix.length), catalogue)
      : { found: rankTools(query, catalogue).slice(0, limit), unknown: [] }
    const missing = unknown.map((name) => `Not found: "${name.slice(0, 64)}".`)
    const head =
      found.length === 0
        ? `No match among ${counted(catalogue.length, "tool")}. Search for other words.`
        : "You can call these tools from your next step on:"
    return {
      title: `${found.length} found: ${query.slice(0, 60)}`,
      output: [...missing, head, ...found.map(describe)].join("\n"),
      metadata: { found: found.map(({ id }) => id) },
    }
  },
})

const selectPrefix = "select:"

/** Returns the tools with these names in the given order, and the names that match no tool. */
function select(names: string, catalogue: readonly CatalogueEntry[]) {
  const byId = new Map(catalogue.map((entry) => [entry.id, entry]))
  const wanted = [...new Set(names.split(/[\s,]+/).filter((name) => name !== ""))]
  return {
    found: wanted.flatMap((name) => byId.get(name) ?? []),
    unknown: wanted.filter((name) => !byId.has(name)),
  }
}

function describe({ id, description }: CatalogueEntry): string {
  const text = description.replaceAll(/\s+/g, " ").trim()
  return `- ${id}: ${text.length > shownLength ? `${text.slice(0, shownLength)}…` : text}`
}

/**
 * Returns the entries that match words of the query, best match first. Rare words have more weight, so that common
 * words such as "for" and "list" have little effect. A match in a name has more weight than a match in a description. A
 * word that equals a tool's whole name ranks that tool first. Ties keep the order of `catalogue`.
 */
export function rankTools(query: string, catalogue: readonly CatalogueEntry[]): CatalogueEntry[] {
  const names = new Set(query.toLowerCase().split(/[\s,]+/))
  const words = [...new Set(wordsOf(query))]
  const texts = catalogue.map(textsOf)
  const scores = words.map((word) => {
    const weights = texts.map((text) => weightOf(word, text))
    const rarity = Math.log(1 + catalogue.length / weights.filter((weight) => weight > 0).length)
    return weights.map((weight) => (weight > 0 ? weight * rarity : 0))
  })
  return catalogue
    .map((entry, index) => {
      const named = names.has(entry.id.toLowerCase())
      return { entry, score: named ? Infinity : scores.reduce((sum, score) => sum + (score[index] ?? 0), 0) }
    })
    .filter(({ score }) => score > 0)
    .sort((a, b) => (a.score === b.score ? 0 : b.score - a.score))
    .map(({ entry }) => entry)
}

/** The words of one tool, by the field that contains them. */
interface EntryWords {
  name: string[]
  description: string[]
  parameters: string[]
}

function textsOf({ id, description, parameters }: CatalogueEntry): EntryWords {
  return { name: wordsOf(id), description: wordsOf(description), parameters: parameters.flatMap(wordsOf) }
}

/**
 * Returns the weight of the best match of a word: highest in the name, lower in the description, lowest in the
 * parameters, and 0 without a match.
 */
function weightOf(word: string, { name, description, parameters }: EntryWords): number {
  if (name.includes(word)) return 4
  if (word.length < minWordLength) return 0
  const matches = (other: string) => other.startsWith(word) || word === `${other}s`
  if (name.some(matches)) return 3
  if (description.some(matches)) return 2
  return parameters.some(matches) ? 1 : 0
}

/** Minimum length for partial matches. Shorter words, such as "a" and "to", match only whole words of a name. */
const minWordLength = 3

/** Splits text into lowercase words. `createIssue` and `create_issue` each yield two. */
function wordsOf(text: string): string[] {
  return text
    .replaceAll(/(\p{Ll})(\p{Lu})/gu, "$1 $2")
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .filter((word) => word !== "")
}
