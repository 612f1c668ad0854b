import * as z from "zod"
import type { SearchAccess, SearchAnswer, SearchRequest } from "./search-backend.ts"
import { requestJson } from "./search-request.ts"

/** The most that one request may want. */
const maxResults = 20

const Answer = z.object({
  web: z
    .object({
      results: z.array(
        z.object({
          url: z.string(),
          title: z.string(),
          description: z.string().nullish(),
          extra_snippets: z.array(z.string()).nullish(),
          page_age: z.string().nullish(),
        }),
      ),
    })
    .nullish(),
})

/** Brave. It has no index of code of its own. */
export async function searchBrave(
  { query, results }: SearchRequest,
  { url, key = "" }: SearchAccess,
  signal: AbortSignal,
): Promise<SearchAnswer> {
  const parameters = new URLSearchParams({ q: query, count: String(Math.min(results, maxResults)) })
  const headers = { "x-subscription-token": key }
  const request = { name: "brave", url: `${url}/web/search?${parameters}`, headers, signal }
  const { web } = await requestJson(request, Answer)
  return {
    kind: "results",
    results: (web?.results ?? []).map((page) => ({
      title: plain(page.title),
      url: page.url,
      text: [page.description ?? "", ...(page.extra_snippets ?? [])].map(plain).join("\n"),
      ...(page.page_age ? { published: page.page_age } : {}),
    })),
  }
}

/** The words that were looked for are marked. */
function plain(text: string): string {
  return text.replace(/<\/?strong>/g, "")
}
