import type { ModelRef } from "../schema/message.ts"

/** Settings other than permission rules that decide which tools are available. */
export interface Features {
  /** Client that shows the session: `cli`, `app`, `desktop` or another name. */
  client: string
  /** Config names of the enabled experimental features. */
  experimental: ReadonlySet<string>
  /** Whether a search service is configured, or Exa without a key is enabled for all providers. */
  search: boolean
}

/** A tool's requirements. The tool is available only if all of them are met. */
interface Condition {
  /** Requires one of these clients. */
  clients?: readonly string[]
  /** Requires this experimental feature. */
  experimental?: string
  /** If true, requires a model trained on patches. If false, requires any other model. */
  patchModel?: boolean
  /** Requires a search service. */
  search?: true
}

/** Requirements by tool id. Other tools are always available. */
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

/** Patterns for the ids of models trained on the `apply_patch` format: GPT-5 and later, and Codex models. */
const patchModels: readonly RegExp[] = [/(?:^|[^a-z])gpt-(?:[5-9]|[1-9]\d)(?!\d)/i, /(?:^|[^a-z])codex-/i]

/** Providers whose models may use the search service that needs no key. */
const searchProviders: readonly string[] = ["opencode"]

/**
 * Returns why a tool is unavailable, or undefined if it is available. Omit `model` if the user calls the tool, so that
 * conditions on the model do not apply.
 */
export function unavailableReason(id: string, features: Features, model?: ModelRef): string | undefined {
  const { clients, experimental, patchModel, search } = conditions.get(id) ?? {}
  if (experimental !== undefined && !features.experimental.has(experimental))
    return `it requires "experimental": {"${experimental}": true} in the config`
  if (clients && !clients.includes(features.client))
    return `it is offered only if TACKLE_CLIENT is ${new Intl.ListFormat("en-GB", { type: "disjunction" }).format(clients)}`
  if (patchModel !== undefined && model && patchModel !== takesPatches(model))
    return patchModel ? "this model uses edit and write instead" : "this model uses apply_patch instead"
  if (search && !canSearch(features, model))
    return "no search service is configured: set EXA_API_KEY, BRAVE_API_KEY, TAVILY_API_KEY, SEARXNG_URL or TACKLE_ENABLE_EXA"
  return undefined
}

/**
 * Returns the features set by environment variables and the config. `TACKLE_CLIENT` specifies the client,
 * `TACKLE_ENABLE_EXA` enables the search without a key, and `TACKLE_EXPERIMENTAL` enables all experimental features
 * that the config does not set. `TACKLE_EXPERIMENTAL_<NAME>` enables or disables one feature and takes precedence over
 * the config. The same variables with the prefix `OPENCODE_` apply where Tackle's variables are unset or empty.
 */
export function readFeatures(options: {
  environment: Readonly<Record<string, string | undefined>>
  /** Value of `experimental` in the config. */
  experimental: Readonly<Record<string, boolean | undefined>>
  search: boolean
}): Features {
  const { environment, experimental, search } = options
  const variable = (name: string) => environment[`TACKLE_${name}`] || environment[`OPENCODE_${name}`]
  const all = isOn(variable("EXPERIMENTAL"))
  const isEnabled = (name: string) =>
    isOn(variable(`EXPERIMENTAL_${name.toUpperCase()}`)) ?? experimental[name] ?? all ?? false
  return {
    client: variable("CLIENT") || "cli",
    experimental: new Set([...featureNames].filter(isEnabled)),
    search: search || isOn(variable("ENABLE_EXA")) === true,
  }
}

const featureNames = new Set([...conditions.values()].flatMap(({ experimental }) => experimental ?? []))

function takesPatches({ modelID }: ModelRef): boolean {
  return patchModels.some((pattern) => pattern.test(modelID))
}

function canSearch(features: Features, model: ModelRef | undefined): boolean {
  return features.search || searchProviders.includes(model?.providerID ?? "")
}

/** Parses a boolean variable. Returns undefined if the variable is unset or empty. */
function isOn(value: string | undefined): boolean | undefined {
  if (value === undefined || value === "") return undefined
  return !/^(?:0|false|no|off)$/i.test(value)
}
