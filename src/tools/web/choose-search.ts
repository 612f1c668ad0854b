import * as z from "zod"
import { TackleError } from "../../util/errors.ts"
import type { SearchAccess, SearchAnswer, SearchRequest } from "./search-backends.ts"

/** A service that searches the web. */
export interface SearchBackend {
  name: string
  /**
   * Searches with the service. Throws `TackleError` with the code `websearch.failed` if the search fails, and
   * `TimeoutError` if the service is too slow. Throws the error that `abortedError` returns if the signal aborts.
   */
  search(request: SearchRequest, signal: AbortSignal): Promise<SearchAnswer>
}

const names = ["exa", "brave", "tavily", "searxng"] as const

/** Schema for `search` in the config. */
export const SearchConfig = z.lazy(() =>
  z.strictObject({
    backend: z.enum(names).describe("Search service for websearch and codesearch"),
    key: z
      .string()
      .optional()
      .describe("API key (default: the environment variable EXA_API_KEY, BRAVE_API_KEY or TAVILY_API_KEY)"),
    url: z
      .string()
      .optional()
      .describe("URL of the service (default for SearXNG: the environment variable SEARXNG_URL)"),
  }),
)
export type SearchConfig = z.infer<typeof SearchConfig>

interface BackendEntry {
  name: (typeof names)[number]
  keyVariable?: string
  url?: string
  urlVariable?: string
}

/** Backends in order of preference. Without config, the first backend whose environment variable is set is used. */
const backends: readonly BackendEntry[] = [
  { name: "exa", keyVariable: "EXA_API_KEY", url: "https://api.exa.ai" },
  { name: "brave", keyVariable: "BRAVE_API_KEY", url: "https://api.search.brave.com/res/v1" },
  { name: "tavily", keyVariable: "TAVILY_API_KEY", url: "https://api.tavily.com" },
  { name: "searxng", urlVariable: "SEARXNG_URL" },
]

/** URL of Exa's MCP server, which needs no key. */
const keylessUrl = "https://mcp.exa.ai/mcp"

/** Names of the environment variables that contain keys. These variables are not passed to commands. */
export const searchKeyVariables: readonly string[] = backends.flatMap(({ keyVariable }) => keyVariable ?? [])

/**
 * Returns the search service set in the config or the environment. If neither sets a search service, returns Exa
 * without a key and `configured: false`. If the config selects Exa but no key is set, also returns Exa without a key.
 * For another service whose key or URL is missing, returns a service whose `search` throws an error that reports the
 * missing setting. See `availability.ts` for when Exa without a key is available.
 */
export function chooseSearch(
  environment: Readonly<Record<string, string | undefined>>,
  config?: SearchConfig,
): { backend: SearchBackend; configured: boolean } {
  const given = (variable: string | undefined) => (variable && environment[variable]) || undefined
  const entry = config
    ? backends.find(({ name }) => name === config.backend)
    : backends.find(({ keyVariable, urlVariable }) => given(keyVariable ?? urlVariable))
  const key = config?.key || given(entry?.keyVariable)
  if (!entry || (entry.name === "exa" && key === undefined)) {
    const backend = open("exa", "exaKeyless", { url: config?.url ?? keylessUrl })
    return { backend, configured: config !== undefined }
  }
  const url = config?.url ?? given(entry.urlVariable) ?? entry.url
  const missing =
    entry.keyVariable && key === undefined ? entry.keyVariable : url ? undefined : entry.urlVariable
  if (missing !== undefined || url === undefined)
    return { backend: incomplete(entry.name, missing), configured: true }
  return { backend: open(entry.name, entry.name, { url, key }), configured: true }
}

/** Returns a service. Its code is loaded at the first search. */
function open(
  name: string,
  service: BackendEntry["name"] | "exaKeyless",
  access: SearchAccess,
): SearchBackend {
  const plain = { ...access, url: access.url.replace(/\/+$/, "") }
  return {
    name,
    async search(request, signal) {
      const { services } = await import("./search-backends.ts")
      return services[service](request, plain, signal)
    },
  }
}

/** Returns a service whose `search` throws an error that reports the missing setting. */
function incomplete(name: string, variable: string | undefined): SearchBackend {
  return {
    name,
    async search() {
      throw new TackleError(
        `The ${name} search is configured, but its ${variable?.endsWith("_URL") ? "URL" : "key"} is missing. Continue without searching, and tell the user to set ${variable}.`,
        { code: "websearch.failed", recoverable: true },
      )
    },
  }
}
