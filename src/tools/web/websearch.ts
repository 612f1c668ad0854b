import * as z from "zod"
import type { ToolContext } from "../../tool/context.ts"
import { define, type Info, type ToolResult } from "../../tool/tool.ts"
import { readText } from "../../util/file-system.ts"
import type { SearchBackend } from "./choose-search.ts"
import type { SearchRequest, SearchResult } from "./search-backends.ts"

/**
 * Maximum total length of all excerpts, in characters. With titles and URLs, the output stays within the default
 * limits.
 */
const maxWebCharacters = 24_000

const tokenCharacters = 4

const webParameters = z.lazy(() =>
  z.object({
    query: z.string().trim().min(1).describe("Search terms"),
    numResults: z.number().int().min(1).max(20).default(8).describe("Maximum number of results"),
  }),
)

/** Creates the websearch tool. */
export function createWebsearchTool(backend: SearchBackend): Info<typeof webParameters> {
  return define("websearch", {
    description: readText(new URL("./websearch.md", import.meta.url)),
    parameters: webParameters,
    access: "network",
    asksFirst: true,
    execute: ({ query, numResults }, ctx) =>
      search(backend, { kind: "web", query, results: numResults, maxCharacters: maxWebCharacters }, ctx),
  })
}

const codeParameters = z.lazy(() =>
  z.object({
    query: z.string().trim().min(1).describe("Language, library with version, and what to do with it"),
    tokensNum: z
      .number()
      .int()
      .min(1_000)
      .max(50_000)
      .default(5_000)
      .describe("Approximate maximum length of the result, in tokens"),
  }),
)

/** Creates the codesearch tool. */
export function createCodesearchTool(backend: SearchBackend): Info<typeof codeParameters> {
  return define("codesearch", {
    description: readText(new URL("./codesearch.md", import.meta.url)),
    parameters: codeParameters,
    access: "network",
    asksFirst: true,
    execute: ({ query, tokensNum }, ctx) => {
      const maxCharacters = tokensNum * tokenCharacters
      return search(backend, { kind: "code", query, results: 8, maxCharacters }, ctx)
    },
  })
}

async function search(backend: SearchBackend, request: SearchRequest, ctx: ToolContext): Promise<ToolResult> {
  const { query, kind } = request
  const permission = kind === "web" ? "websearch" : "codesearch"
  const about = { query, backend: backend.name }
  await ctx.ask({ permission, patterns: [query], always: ["*"], metadata: about })
  const answer = await backend.search(request, ctx.abort)
  const count = answer.kind === "results" ? { results: answer.results.length } : {}
  const output = answer.kind === "text" ? answer.text : render(answer.results, request)
  return { title: query, output, metadata: { ...about, ...count } }
}

function render(results: readonly SearchResult[], { results: wanted, maxCharacters }: SearchRequest): string {
  if (results.length === 0) return "No results. Try other or fewer words."
  const shown = results.slice(0, wanted)
  const room = Math.floor(maxCharacters / shown.length)
  return shown.map((result, index) => entry(result, index + 1, room)).join("\n\n")
}

function entry({ title, url, text, published }: SearchResult, number: number, room: number): string {
  const body = text.trim()
  const shown = body.length > room ? `${body.slice(0, room)}…` : body
  const date = published ? ` (${published})` : ""
  return [`${number}. ${title || url}${date}`, url, shown].filter((line) => line !== "").join("\n")
}
