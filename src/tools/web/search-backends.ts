import * as z from "zod"
import { throwIfAborted, withTimeLimit } from "../../util/abort.ts"
import { errorMessage, TackleError } from "../../util/errors.ts"

/** A web search or a code search. */
export interface SearchRequest {
  /** `code` searches for library examples and documentation. */
  kind: "web" | "code"
  query: string
  /** Maximum number of results. Some services return more. */
  results: number
  /** Maximum total length of all texts, in characters. Some services ignore it. */
  maxCharacters: number
}

/** A page and an excerpt of its text. */
export interface SearchResult {
  title: string
  url: string
  text: string
  /** Publication date in the service's format. */
  published?: string
}

/** Pages, or text that the service compiled from pages. */
export type SearchAnswer = { kind: "results"; results: SearchResult[] } | { kind: "text"; text: string }

/** URL and key of a service. */
export interface SearchAccess {
  key?: string
  /** URL without a trailing slash. */
  url: string
}

/** Thrown if a search fails. The message contains the cause and never contains the key. */
class SearchError extends TackleError {
  constructor(message: string, cause?: unknown) {
    super(message, { code: "websearch.failed", recoverable: true, cause })
  }
}

type Search = (request: SearchRequest, access: SearchAccess, signal: AbortSignal) => Promise<SearchAnswer>

/** The search functions by service name. */
export const services = {
  exa: searchExa,
  exaKeyless: searchExaKeyless,
  brave: searchBrave,
  tavily: searchTavily,
  searxng: searchSearxng,
} satisfies Record<string, Search>

/** Approximate number of characters per token of English or code. */
const charactersPerToken = 4

/** Pages as Exa, Tavily and SearXNG return them. */
const Pages = z.object({
  results: z.array(
    z.object({
      url: z.string(),
      title: z.string().nullish(),
      text: z.string().nullish(),
      content: z.string().nullish(),
      publishedDate: z.string().nullish(),
      published_date: z.string().nullish(),
    }),
  ),
})

async function requestPages(request: BackendRequest): Promise<SearchAnswer> {
  const { results } = await requestJson(request, Pages)
  return {
    kind: "results",
    results: results.map(({ url, title, text, content, publishedDate, published_date }) => ({
      title: title ?? "",
      url,
      text: text ?? content ?? "",
      published: publishedDate || published_date || undefined,
    })),
  }
}

const ExaContext = z.object({ response: z.string() })

/** Searches with Exa. Returns pages with their text or, for code, text compiled from many sources. */
async function searchExa(
  { kind, query, results, maxCharacters }: SearchRequest,
  { url, key = "" }: SearchAccess,
  signal: AbortSignal,
): Promise<SearchAnswer> {
  const shared = { name: "exa", headers: { "x-api-key": key }, signal }
  if (kind === "code") {
    const body = { query, tokensNum: Math.round(maxCharacters / charactersPerToken) }
    const { response } = await requestJson({ ...shared, url: `${url}/context`, body }, ExaContext)
    return { kind: "text", text: response }
  }
  const contents = { text: { maxCharacters: Math.ceil(maxCharacters / results) } }
  const body = { query, type: "auto", numResults: results, contents }
  return requestPages({ ...shared, url: `${url}/search`, body })
}

const McpReply = z.object({
  error: z.object({ message: z.string() }).optional(),
  result: z
    .object({
      isError: z.boolean().optional(),
      content: z.array(z.object({ type: z.string(), text: z.string().optional() })),
    })
    .optional(),
})

/** Searches with Exa without a key, through one tool call to its public MCP server. */
async function searchExaKeyless(
  request: SearchRequest,
  { url }: SearchAccess,
  signal: AbortSignal,
): Promise<SearchAnswer> {
  const text = await requestText({
    name: "exa",
    url,
    headers: { accept: "application/json, text/event-stream" },
    body: { jsonrpc: "2.0", id: 1, method: "tools/call", params: mcpToolCall(request) },
    signal,
  })
  const { result, error } = parseAnswer(messageOf(text), McpReply, "exa")
  const found = result?.content.flatMap((part) => part.text ?? []).join("\n") ?? ""
  if (error || !result || result.isError) {
    throw new SearchError(`The exa search failed: ${(error?.message ?? found) || "no result"}`)
  }
  return found === "" ? { kind: "results", results: [] } : { kind: "text", text: found }
}

function mcpToolCall({ kind, query, results, maxCharacters }: SearchRequest) {
  if (kind === "web") {
    return {
      name: "web_search_exa",
      arguments: { query, numResults: results, type: "auto", contextMaxCharacters: maxCharacters },
    }
  }
  const tokensNum = Math.round(maxCharacters / charactersPerToken)
  return { name: "get_code_context_exa", arguments: { query, tokensNum } }
}

/** Returns the JSON of a response that is either plain JSON or an event stream with one message. */
function messageOf(text: string): string {
  const data = text.split(/\r?\n/).flatMap((line) => (line.startsWith("data:") ? [line.slice(5).trim()] : []))
  return data.findLast((message) => message !== "") ?? text
}

/** Maximum number of results per request that Brave allows. */
const maxBraveResults = 20

const BraveAnswer = z.object({
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

/** Searches with Brave, which has no separate search for code. */
async function searchBrave(
  { query, results }: SearchRequest,
  { url, key = "" }: SearchAccess,
  signal: AbortSignal,
): Promise<SearchAnswer> {
  const parameters = new URLSearchParams({ q: query, count: String(Math.min(results, maxBraveResults)) })
  const headers = { "x-subscription-token": key }
  const request = { name: "brave", url: `${url}/web/search?${parameters}`, headers, signal }
  const { web } = await requestJson(request, BraveAnswer)
  // Brave highlights the search terms.
  const plain = (text: string) => text.replace(/<\/?strong>/g, "")
  return {
    kind: "results",
    results: (web?.results ?? []).map((page) => ({
      title: plain(page.title),
      url: page.url,
      text: [page.description ?? "", ...(page.extra_snippets ?? [])].map(plain).join("\n"),
      published: page.page_age || undefined,
    })),
  }
}

/** Searches with Tavily, which has no separate search for code. */
async function searchTavily(
  { query, results }: SearchRequest,
  { url, key = "" }: SearchAccess,
  signal: AbortSignal,
): Promise<SearchAnswer> {
  const headers = { authorization: `Bearer ${key}` }
  const body = { query, max_results: results }
  return requestPages({ name: "tavily", url: `${url}/search`, headers, body, signal })
}

/**
 * Searches with a SearXNG server, whose settings must allow the `json` format. Searches for code use the `it` category.
 */
async function searchSearxng(
  { kind, query }: SearchRequest,
  { url }: SearchAccess,
  signal: AbortSignal,
): Promise<SearchAnswer> {
  const parameters = new URLSearchParams({ q: query, format: "json" })
  if (kind === "code") parameters.set("categories", "it")
  return requestPages({ name: "searxng", url: `${url}/search?${parameters}`, signal })
}

/** Time limit for a request, in milliseconds. */
const timeoutMs = 25_000

/** Maximum size of a response, in bytes. */
const maxBytes = 5 * 1024 * 1024

/** A request to a service. Requests with a `body` use POST. Other requests use GET. */
interface BackendRequest {
  /** Name of the service, for messages. */
  name: string
  url: string
  headers?: Record<string, string>
  body?: unknown
  signal: AbortSignal
}

/**
 * Sends a request and parses the JSON response. Throws {@link SearchError} if the response is unexpected, and the
 * errors that {@link requestText} throws.
 */
async function requestJson<S extends z.ZodType>(request: BackendRequest, shape: S): Promise<z.output<S>> {
  return parseAnswer(await requestText(request), shape, request.name)
}

/**
 * Sends a request and returns the response text. Does not follow redirects, so that the key goes only to the configured
 * server. Throws {@link SearchError} if the server is unreachable, returns an HTTP error or sends more than 5 MB, and
 * `TimeoutError` after 25 s. Throws the error that `abortedError` returns if the signal aborts.
 */
async function requestText({ name, url, headers, body, signal }: BackendRequest): Promise<string> {
  const message = `The ${name} search did not respond within ${timeoutMs / 1000} s.`
  return withTimeLimit({ ms: timeoutMs, message, signal }, async (limited) => {
    try {
      const response = await fetch(url, {
        method: body === undefined ? "GET" : "POST",
        body: body === undefined ? undefined : JSON.stringify(body),
        redirect: "error",
        signal: limited,
        headers: {
          accept: "application/json",
          ...(body === undefined ? {} : { "content-type": "application/json" }),
          ...headers,
        },
      })
      const text = await readBounded(response, name)
      if (response.ok) return text
      throw new SearchError(statusText(name, response.status, text))
    } catch (error) {
      throwIfAborted(limited)
      if (error instanceof SearchError) throw error
      const cause = error instanceof Error && error.cause !== undefined ? error.cause : error
      throw new SearchError(`Cannot reach the ${name} search: ${errorMessage(cause)}.`, error)
    }
  })
}

function parseAnswer<S extends z.ZodType>(text: string, shape: S, name: string): z.output<S> {
  try {
    return shape.parse(JSON.parse(text))
  } catch (error) {
    const what = error instanceof z.ZodError ? z.prettifyError(error) : errorMessage(error)
    throw new SearchError(`The ${name} search returned an unexpected response: ${what}`, error)
  }
}

async function readBounded(response: Response, name: string): Promise<string> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  // Leaving the loop early cancels the response.
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length
    if (bytes > maxBytes) throw new SearchError(`The ${name} search returned more than ${maxBytes} bytes.`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString("utf8")
}

function statusText(name: string, status: number, text: string): string {
  const what = `The ${name} search returned HTTP ${status}`
  if (status === 401 || status === 403)
    return `${what}: access was refused. Continue without searching, and tell the user to check the key and the service's settings.`
  if (status === 402)
    return `${what}: the account has no credit left. Continue without searching, and tell the user.`
  if (status === 429)
    return `${what}: too many searches. Wait before you try again, or continue without searching.`
  return `${what}: ${text.slice(0, 300).trim() || "no response body"}`
}
