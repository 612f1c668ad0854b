import * as z from "zod"
import type { SearchAccess, SearchAnswer, SearchRequest } from "./search-backend.ts"
import { SearchError } from "./search-error.ts"
import { charactersPerToken } from "./search-exa.ts"
import { parseAnswer, requestText } from "./search-request.ts"

const Reply = z.object({
  error: z.object({ message: z.string() }).optional(),
  result: z
    .object({
      isError: z.boolean().optional(),
      content: z.array(z.object({ type: z.string(), text: z.string().optional() })),
    })
    .optional(),
})

/** Exa without a key: one call of a tool of its public server of the Model Context Protocol. */
export async function searchExaKeyless(
  request: SearchRequest,
  { url }: SearchAccess,
  signal: AbortSignal,
): Promise<SearchAnswer> {
  const text = await requestText({
    name: "exa",
    url,
    headers: { accept: "application/json, text/event-stream" },
    body: { jsonrpc: "2.0", id: 1, method: "tools/call", params: toolCall(request) },
    signal,
  })
  const { result, error } = parseAnswer(messageOf(text), Reply, "exa")
  const found = result?.content.flatMap((part) => part.text ?? []).join("\n") ?? ""
  if (error || !result || result.isError) {
    throw new SearchError(`The exa search failed: ${(error?.message ?? found) || "no result"}`)
  }
  return found === "" ? { kind: "results", results: [] } : { kind: "text", text: found }
}

function toolCall({ kind, query, results, maxCharacters }: SearchRequest) {
  if (kind === "web") {
    return {
      name: "web_search_exa",
      arguments: { query, numResults: results, type: "auto", contextMaxCharacters: maxCharacters },
    }
  }
  const tokensNum = Math.round(maxCharacters / charactersPerToken)
  return { name: "get_code_context_exa", arguments: { query, tokensNum } }
}

/** The answer comes as plain JSON or as the one message of an event stream. */
function messageOf(text: string): string {
  const data = text.split(/\r?\n/).flatMap((line) => (line.startsWith("data:") ? [line.slice(5).trim()] : []))
  return data.findLast((message) => message !== "") ?? text
}
