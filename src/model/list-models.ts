import * as z from "zod"
import { parseJson } from "../util/json.ts"
import { familyOf, providerTable } from "./provider-table.ts"

/** The result of {@link listModels}. `refused` means that the provider did not accept the key. */
export type ModelList =
  | { kind: "models"; ids: string[] }
  | { kind: "refused" }
  | { kind: "unknown"; reason: string }

/** Time limit of the request in milliseconds. */
const timeoutMs = 5_000
/** Maximum size of a model list in bytes. */
const maxBytes = 5_000_000

const Answer = z.lazy(() =>
  z.union([
    z.object({ data: z.array(z.object({ id: z.string().min(1) })) }),
    z.object({ models: z.array(z.object({ name: z.string().min(1) })) }),
  ]),
)

/**
 * Asks a known provider for the ids of its models, which also shows whether the key is valid. Never rejects. `baseURL`
 * overrides the provider's URL.
 */
export async function listModels(options: {
  providerID: string
  key: string
  baseURL?: string
  signal: AbortSignal
}): Promise<ModelList> {
  const { providerID, key, signal } = options
  const row = providerTable.find(({ id }) => id === providerID)
  const url = options.baseURL ?? row?.baseURL
  if (!row || url === undefined) return { kind: "unknown", reason: `Unknown provider "${providerID}".` }
  const page = familyOf(row.npm) === "google" ? "?pageSize=1000" : "?limit=1000"
  try {
    const response = await fetch(`${url}/models${page}`, {
      headers: keyHeaders(familyOf(row.npm), key),
      redirect: "error",
      signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
    })
    const text = await response.text()
    if ([400, 401, 403].includes(response.status)) return { kind: "refused" }
    if (!response.ok || text.length > maxBytes)
      return { kind: "unknown", reason: `status ${response.status}` }
    return readAnswer(text)
  } catch (error) {
    return { kind: "unknown", reason: error instanceof Error ? error.message : String(error) }
  }
}

function keyHeaders(family: ReturnType<typeof familyOf>, key: string): Record<string, string> {
  if (family === "anthropic") return { "x-api-key": key, "anthropic-version": "2023-06-01" }
  if (family === "google") return { "x-goog-api-key": key }
  return { authorization: `Bearer ${key}` }
}

function readAnswer(text: string): ModelList {
  const parsed = parseJson(text)
  const { data } = Answer.safeParse(parsed.ok ? parsed.value : undefined)
  if (!data) return { kind: "unknown", reason: "the answer is not a list of models" }
  const ids =
    "data" in data
      ? data.data.map(({ id }) => id)
      : data.models.map(({ name }) => name.replace(/^models\//, ""))
  return { kind: "models", ids: ids.sort() }
}
