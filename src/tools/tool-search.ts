import * as z from "zod"
import type { CatalogueEntry } from "../tool/context.ts"
import { define } from "../tool/tool.ts"
import { TackleError } from "../util/errors.ts"
import { readText } from "../util/file-system.ts"
import { rankTools } from "./tool-search/rank-tools.ts"

/** The id under which the engine knows this tool. */
export const toolSearchId = "tool_search"

const parameters = z.lazy(() =>
  z.object({
    query: z
      .string()
      .trim()
      .min(1)
      .max(2_000)
      .describe("Words that describe the tool, or its name; select:a,b picks tools by name"),
    limit: z.number().int().min(1).max(20).default(5).describe("Maximum number of results for words"),
  }),
)

/** Of a description, in characters: the model reads all of it in the definition. */
const shownLength = 160

/** Looks through the tools that are kept back. It only names them: the session offers what a call named in `found`. */
export const toolSearchTool = define(toolSearchId, {
  description: readText(new URL("./tool-search.md", import.meta.url)),
  parameters,
  access: "read",
  async execute({ query, limit }, ctx) {
    const { catalogue } = ctx
    if (!catalogue)
      throw new TackleError("All tools are already offered: there is nothing to search.", {
        code: "tool-search.unavailable",
        recoverable: true,
      })
    const { found, unknown } = query.startsWith(selecting)
      ? select(query.slice(selecting.length), catalogue)
      : { found: rankTools(query, catalogue).slice(0, limit), unknown: [] }
    const missing = unknown.map((name) => `Not found: "${name.slice(0, 64)}".`)
    const head =
      found.length === 0
        ? `No match among ${catalogue.length} tools. Try other or fewer words.`
        : "You can call these tools from your next step on:"
    return {
      title: `${found.length} found: ${query.slice(0, 60)}`,
      output: [...missing, head, ...found.map(describe)].join("\n"),
      metadata: { found: found.map(({ id }) => id) },
    }
  },
})

const selecting = "select:"

/** The tools of these names, in the order in which they are named. */
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
