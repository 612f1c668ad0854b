import * as z from "zod"
import { SearchError } from "./search-error.ts"

/** What is looked for. */
export interface SearchRequest {
  /** `code`: examples and documentation of libraries rather than pages about anything. */
  kind: "web" | "code"
  query: string
  /** As many as are wanted at most. */
  results: number
  /** How much text is wanted in all, in characters. A back end may give less. */
  maxCharacters: number
}

/** A page that was found. `text`: what the back end tells of it. */
export interface SearchResult {
  title: string
  url: string
  text: string
  /** As the back end writes it. */
  published?: string
}

/** Pages, or a text that the back end has made of them. */
export type SearchAnswer = { kind: "results"; results: SearchResult[] } | { kind: "text"; text: string }

/** Something that searches the web. */
export interface SearchBackend {
  name: string
  /** Throws {@link SearchError}, and the signal's reason. */
  search(request: SearchRequest, signal: AbortSignal): Promise<SearchAnswer>
}

/** How a back end is reached. */
export interface SearchAccess {
  key?: string
  /** Without a slash at its end. */
  url: string
}

const names = ["exa", "brave", "tavily", "searxng"] as const

/** `search` of the config. */
export const SearchConfig = z.lazy(() =>
  z.strictObject({
    backend: z.enum(names).describe("Search service for websearch and codesearch"),
    key: z.string().optional().describe("API key. Default: EXA_API_KEY, BRAVE_API_KEY or TAVILY_API_KEY"),
    url: z.string().optional().describe("URL of the service. SearXNG: default SEARXNG_URL"),
  }),
)
export type SearchConfig = z.infer<typeof SearchConfig>

type Search = (request: SearchRequest, access: SearchAccess, signal: AbortSignal) => Promise<SearchAnswer>

interface BackendEntry {
  name: (typeof names)[number]
  keyVariable?: string
  url?: string
  urlVariable?: string
  load(): Promise<Search>
}

/** In the order of preference where several are configured by their variables alone. */
const backends: readonly BackendEntry[] = [
  {
    name: "exa",
    keyVariable: "EXA_API_KEY",
    url: "https://api.exa.ai",
    load: async () => (await import("./search-exa.ts")).searchExa,
  },
  {
    name: "brave",
    keyVariable: "BRAVE_API_KEY",
    url: "https://api.search.brave.com/res/v1",
    load: async () => (await import("./search-brave.ts")).searchBrave,
  },
  {
    name: "tavily",
    keyVariable: "TAVILY_API_KEY",
    url: "https://api.tavily.com",
    load: async () => (await import("./search-tavily.ts")).searchTavily,
  },
  {
    name: "searxng",
    urlVariable: "SEARXNG_URL",
    load: async () => (await import("./search-searxng.ts")).searchSearxng,
  },
]

/** The search of Exa that needs no key: a server of the Model Context Protocol. */
const keylessUrl = "https://mcp.exa.ai/mcp"
const loadKeyless = async () => (await import("./search-exa-keyless.ts")).searchExaKeyless

/** Variables that hold keys: no command gets them. */
export const searchKeyVariables: readonly string[] = backends.flatMap(({ keyVariable }) => keyVariable ?? [])

/**
 * The back end that config or environment name, `configured`; else Exa without a key, which is there for some only: see
 * `availability.ts`. Nothing is loaded before the first search.
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
    const backend = open("exa", loadKeyless, { url: config?.url ?? keylessUrl })
    return { backend, configured: config !== undefined }
  }
  const url = config?.url ?? given(entry.urlVariable) ?? entry.url
  const missing =
    entry.keyVariable && key === undefined ? entry.keyVariable : url ? undefined : entry.urlVariable
  if (missing !== undefined || url === undefined)
    return { backend: incomplete(entry.name, missing), configured: true }
  return {
    backend: open(entry.name, entry.load, key === undefined ? { url } : { url, key }),
    configured: true,
  }
}

function open(name: string, load: () => Promise<Search>, access: SearchAccess): SearchBackend {
  const plain = { ...access, url: access.url.replace(/\/+$/, "") }
  return { name, search: async (request, signal) => (await load())(request, plain, signal) }
}

/** Named by the config, and without what it needs: whoever searches is told. */
function incomplete(name: string, variable: string | undefined): SearchBackend {
  return {
    name,
    async search() {
      throw new SearchError(
        `The ${name} search is configured, but ${variable} is not set. Continue without it, and say so.`,
      )
    },
  }
}
