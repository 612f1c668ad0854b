import * as z from "zod"
import type { SearchAccess, SearchAnswer, SearchRequest } from "./search-backend.ts"
import { requestJson } from "./search-request.ts"

/** Characters of a token of English or code, as a rule of thumb. */
export const charactersPerToken = 4

const Pages = z.object({
  results: z.array(
    z.object({
      url: z.string(),
      title: z.string().nullish(),
      text: z.string().nullish(),
      publishedDate: z.string().nullish(),
    }),
  ),
})

const Context = z.object({ response: z.string() })

/** Exa: pages with their text, and for code a text made of many sources. */
export async function searchExa(
  request: SearchRequest,
  { url, key = "" }: SearchAccess,
  signal: AbortSignal,
): Promise<SearchAnswer> {
  const { kind, query, results, maxCharacters } = request
  const shared = { name: "exa", headers: { "x-api-key": key }, signal }
  if (kind === "code") {
    const body = { query, tokensNum: Math.round(maxCharacters / charactersPerToken) }
    const { response } = await requestJson({ ...shared, url: `${url}/context`, body }, Context)
    return { kind: "text", text: response }
  }
  const contents = { text: { maxCharacters: Math.ceil(maxCharacters / results) } }
  const body = { query, type: "auto", numResults: results, contents }
  const found = await requestJson({ ...shared, url: `${url}/search`, body }, Pages)
  return {
    kind: "results",
    results: found.results.map((page) => ({
      title: page.title ?? "",
      url: page.url,
      text: page.text ?? "",
      ...(page.publishedDate ? { published: page.publishedDate } : {}),
    })),
  }
}
