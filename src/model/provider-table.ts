import type { ProviderFamily } from "./model.ts"

/** A provider that is known without any config. */
export interface ProviderRow {
  id: string
  name: string
  npm: string
  baseURL: string
  /** Environment variable that moves `baseURL`. */
  baseURLVariable?: string
  /** Environment variables that may hold the key, first found wins. Empty: no key needed. */
  keyVariables: readonly string[]
  /** A model server that people run on their own machine listens on this port of 127.0.0.1. */
  port?: number
}

/** For a provider of which neither the table nor the config says by which package it is asked. */
export const defaultPackage = "@ai-sdk/openai-compatible"

/** The known providers. Any model id is taken for them: the server knows which it has. */
export const providerTable: readonly ProviderRow[] = [
  {
    id: "openai",
    name: "OpenAI",
    npm: "@ai-sdk/openai",
    baseURL: "https://api.openai.com/v1",
    baseURLVariable: "OPENAI_BASE_URL",
    keyVariables: ["OPENAI_API_KEY"],
  },
  {
    id: "anthropic",
    name: "Anthropic",
    npm: "@ai-sdk/anthropic",
    baseURL: "https://api.anthropic.com/v1",
    baseURLVariable: "ANTHROPIC_BASE_URL",
    keyVariables: ["ANTHROPIC_API_KEY"],
  },
  {
    id: "google",
    name: "Google",
    npm: "@ai-sdk/google",
    baseURL: "https://generativelanguage.googleapis.com/v1beta",
    keyVariables: ["GOOGLE_GENERATIVE_AI_API_KEY", "GEMINI_API_KEY"],
  },
  local("ollama", "Ollama", 11434),
  local("lmstudio", "LM Studio", 1234),
  local("llamacpp", "llama.cpp", 8080),
  local("vllm", "vLLM", 8000),
]

/** The packages that ship with Tackle. To name any other runs what lies under that name. */
export const shippedPackages: ReadonlySet<string> = new Set(providerTable.map(({ npm }) => npm))

/** The row of a known provider. */
export function findProvider(id: string): ProviderRow | undefined {
  return providerTable.find((row) => row.id === id)
}

/** What a person does to give a provider its key: the end of an error's text. */
export function keyRemedy(providerID: string, extraVariables: readonly string[] = []): string {
  const variables = [...extraVariables, ...(findProvider(providerID)?.keyVariables ?? [])]
  const config = `provider.${providerID}.options.apiKey in the config (for instance "{env:MY_KEY}")`
  if (variables.length === 0) return `Set ${config}.`
  return `Set ${variables.join(" or ")} in the environment, or ${config}.`
}

/** Whose wire format a package speaks. */
export function familyOf(npm: string): ProviderFamily {
  const families: Record<string, ProviderFamily> = {
    "@ai-sdk/openai": "openai",
    "@ai-sdk/anthropic": "anthropic",
    "@ai-sdk/google": "google",
    [defaultPackage]: "openai-compatible",
  }
  return families[npm] ?? "other"
}

/**
 * The key of `providerOptions` that a package listens to. The one for compatible servers takes the provider's id; the
 * AI SDK's own take their name, but for Azure, which is OpenAI's in another place.
 */
export function optionsKeyOf(npm: string, providerID: string): string {
  if (npm === "@ai-sdk/azure") return "openai"
  const [, scope = "", name = ""] = /^@([^/]+)\/(.+)$/.exec(npm) ?? []
  if (npm !== defaultPackage && scope === "ai-sdk")
    return name.replace(/-(.)/g, (_, letter: string) => letter.toUpperCase())
  if (name === "ai-sdk-provider") return scope
  return providerID.split(".")[0] ?? providerID
}

function local(id: string, name: string, port: number): ProviderRow {
  return { id, name, npm: defaultPackage, baseURL: `http://127.0.0.1:${port}/v1`, keyVariables: [], port }
}
