import type { ModelRef } from "../schema/message.ts"

/** What decides, beside rules, which of the tools there are here. */
export interface Features {
  /** Who shows the session to the person: `cli`, `app`, `desktop` or a name of its own. */
  client: string
  /** Experimental features that are switched on, by their names in the config. */
  experimental: ReadonlySet<string>
  /** Whether a back end for searching the web is configured. */
  search: boolean
  /** Whether the search that needs no key may be used with every provider. */
  exa: boolean
}

/** What a tool needs; all of it has to hold. */
interface Condition {
  /** Only where one of these clients shows the session. */
  clients?: readonly string[]
  /** Only with this experimental feature. */
  experimental?: string
  /** Only for models that are trained to write patches, or only for the others. */
  patchModel?: boolean
  /** Only where the web can be searched. */
  search?: true
}

/** Tools that are not for everyone. A tool that is not named here is always there. */
const conditions: ReadonlyMap<string, Condition> = new Map<string, Condition>([
  ["edit", { patchModel: false }],
  ["write", { patchModel: false }],
  ["apply_patch", { patchModel: true }],
  ["websearch", { search: true }],
  ["codesearch", { search: true }],
  ["question", { clients: ["app", "cli", "desktop"] }],
  ["lsp", { experimental: "lsp_tool" }],
  ["batch", { experimental: "batch_tool" }],
  ["plan_enter", { experimental: "plan_mode", clients: ["cli"] }],
  ["plan_exit", { experimental: "plan_mode", clients: ["cli"] }],
])

/** Ids of models that were trained on the envelope of `apply_patch`: GPT-5 and later, and what is named after Codex. */
const patchModels: readonly RegExp[] = [/(?:^|[^a-z])gpt-(?:[5-9]|[1-9]\d)(?!\d)/i, /(?:^|[^a-z])codex-/i]

/** Providers whose models may use the search that needs no key. */
const searchProviders: readonly string[] = ["opencode"]

/**
 * Why the tool is not there, or undefined where it is. Without a model it is a person who calls by hand: nothing is
 * then kept back for the sake of a model.
 */
export function whyUnavailable(id: string, features: Features, model?: ModelRef): string | undefined {
  const { clients, experimental, patchModel, search } = conditions.get(id) ?? {}
  if (experimental !== undefined && !features.experimental.has(experimental))
    return `requires "experimental": {"${experimental}": true} in the config`
  if (clients && !clients.includes(features.client)) return `only in the clients ${clients.join(", ")}`
  if (patchModel !== undefined && model && patchModel !== takesPatches(model))
    return patchModel ? "this model gets edit and write instead" : "this model gets apply_patch instead"
  if (search && !canSearch(features, model))
    return "no search service is configured: set EXA_API_KEY, BRAVE_API_KEY, TAVILY_API_KEY, SEARXNG_URL or TACKLE_ENABLE_EXA"
  return undefined
}

/** `TACKLE_CLIENT`, `TACKLE_ENABLE_EXA`, `TACKLE_EXPERIMENTAL` for all features and `TACKLE_EXPERIMENTAL_…` for one. */
export function readFeatures(options: {
  environment: Readonly<Record<string, string | undefined>>
  /** As in the config. */
  experimental: Readonly<Record<string, boolean | undefined>>
  search: boolean
}): Features {
  const { environment, experimental, search } = options
  const all = isOn(environment.TACKLE_EXPERIMENTAL)
  const isEnabled = (name: string) =>
    isOn(environment[`TACKLE_EXPERIMENTAL_${name.toUpperCase()}`]) ?? experimental[name] ?? all ?? false
  return {
    client: environment.TACKLE_CLIENT || "cli",
    experimental: new Set([...featureNames].filter(isEnabled)),
    search,
    exa: isOn(environment.TACKLE_ENABLE_EXA) ?? false,
  }
}

const featureNames = new Set([...conditions.values()].flatMap(({ experimental }) => experimental ?? []))

function takesPatches({ modelID }: ModelRef): boolean {
  return patchModels.some((pattern) => pattern.test(modelID))
}

function canSearch(features: Features, model: ModelRef | undefined): boolean {
  return features.search || features.exa || searchProviders.includes(model?.providerID ?? "")
}

/** Undefined where the variable says nothing. */
function isOn(value: string | undefined): boolean | undefined {
  if (value === undefined || value === "") return undefined
  return !/^(?:0|false|no|off)$/i.test(value)
}
