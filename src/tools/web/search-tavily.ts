import * as z from "zod"
import type { SearchAccess, SearchAnswer, SearchRequest } from "./search-backend.ts"
import { requestJson } from "./search-request.ts"

const Answer = z.object({
  results: z.array(
    z.object({
      url: z.string(),
      title: z.string(),
      content: z.string().nullish(),
      published_date: z.string().nullish(),
    }),
  ),
})

/** Tavily. It has no index of code of its own. */
export async function searchTavily(
  { query, results }: SearchRequest,
  { url, key = "" }: SearchAccess,
  signal: AbortSignal,
): Promise<SearchAnswer> {
  const answer = await requestJson(
    {
      name: "tavily",
      url: `${url}/search`,
      headers: { authorization: `Bearer ${key}` },
      body: { query, max_results: results },
      signal,
    },
    Answer,
  )
  return {
    kind: "results",
    results: answer.results.map((page) => ({
      title: page.title,
      url: page.url,
      text: page.content ?? "",
      ...(page.published_date ? { published: page.published_date } : {}),
    })),
  }
}
