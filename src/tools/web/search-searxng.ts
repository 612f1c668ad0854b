import * as z from "zod"
import type { SearchAccess, SearchAnswer, SearchRequest } from "./search-backend.ts"
import { requestJson } from "./search-request.ts"

const Answer = z.object({
  results: z.array(
    z.object({
      url: z.string(),
      title: z.string(),
      content: z.string().nullish(),
      publishedDate: z.string().nullish(),
    }),
  ),
})

/** A server of SearXNG, which has to allow the format `json` in its settings. Code is looked for in its category `it`. */
export async function searchSearxng(
  { kind, query, results }: SearchRequest,
  { url }: SearchAccess,
  signal: AbortSignal,
): Promise<SearchAnswer> {
  const parameters = new URLSearchParams({ q: query, format: "json" })
  if (kind === "code") parameters.set("categories", "it")
  const answer = await requestJson({ name: "searxng", url: `${url}/search?${parameters}`, signal }, Answer)
  return {
    kind: "results",
    results: answer.results.slice(0, results).map((page) => ({
      title: page.title,
      url: page.url,
      text: page.content ?? "",
      ...(page.publishedDate ? { published: page.publishedDate } : {}),
    })),
  }
}
