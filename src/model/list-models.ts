import * as z from "zod"
import { errorMessage } from "../util/errors.ts"
import { parseJson } from "../util/json.ts"
import { familyOf, providerTable } from "./provider-table.ts"

/**
 * The models that a server lists. `refused` means that the server did not accept the key. `unknown` means that the list
 * could not be read.
 */
export type ModelList =
  | { kind: "models"; ids: string[] }
  | { kind: "refused" }
  | { kind: "unknown"; reason: string }

/** Maximum time in milliseconds to wait for a provider. */
const providerMs = 5_000

/**
 * Requests a known provider's model ids and returns them sorted. Never rejects. `baseURL` overrides the provider's URL.
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
  const family = familyOf(row.npm)
  const page = family === "google" ? "?pageSize=1000" : "?limit=1000"
  const list = await requestList(`${url}/models${page}`, {
    headers: keyHeaders(family, key),
    signal: AbortSignal.any([signal, AbortSignal.timeout(providerMs)]),
  })
  return list.kind === "models" ? { ...list, ids: list.ids.sort() } : list
}

function keyHeaders(family: ReturnType<typeof familyOf>, key: string): Record<string, string> {
  if (family === "anthropic") return { "x-api-key": key, "anthropic-version": "2023-06-01" }
  if (family === "google") return { "x-goog-api-key": key }
  return { authorization: `Bearer ${key}` }
}

/** A model server on this machine. */
export interface LocalServer {
  /** Id of the known provider that usually listens on the port, such as `ollama`. */
  providerID: string
  /**
   * Display name, such as `Ollama`. A different program may use the port, so ask the user before sending prompts to the
   * server.
   */
  name: string
  baseURL: string
  models: string[]
}

/**
 * Maximum time in milliseconds to wait for a local server. A server on a busy machine may need several hundred
 * milliseconds. A closed port refuses the connection immediately.
 */
const localMs = 1_000

/**
 * Finds model servers (Ollama, LM Studio, llama.cpp, vLLM) on their usual ports on 127.0.0.1. Asks all ports for their
 * models in parallel and waits at most one second. Omits servers without models. `ports` maps provider ids to the ports
 * to check instead. Rejects only if the signal is aborted.
 */
export async function findLocalServers(options: {
  fetch?: typeof fetch
  signal: AbortSignal
  ports?: Readonly<Record<string, number>>
}): Promise<LocalServer[]> {
  const { signal, ports } = options
  const candidates = providerTable.flatMap(({ id: providerID, name, port: usual }) => {
    const port = ports ? ports[providerID] : usual
    return port === undefined ? [] : [{ providerID, name, baseURL: `http://127.0.0.1:${port}/v1` }]
  })
  const found = await Promise.all(
    candidates.map(async (candidate) => {
      const limited = AbortSignal.any([signal, AbortSignal.timeout(localMs)])
      const list = await requestList(`${candidate.baseURL}/models`, { signal: limited }, options.fetch)
      return list.kind === "models" && list.ids.length > 0 ? { ...candidate, models: list.ids } : undefined
    }),
  )
  signal.throwIfAborted()
  return found.filter((server) => server !== undefined)
}

/** Maximum size of a model list in bytes. */
const maxBytes = 5_000_000

const Answer = z.lazy(() =>
  z.union([
    z.object({ data: z.array(z.object({ id: z.string().min(1) })) }),
    z.object({ models: z.array(z.object({ name: z.string().min(1) })) }),
  ]),
)

/** Requests the list. Never rejects. Does not follow redirects, which could lead to another machine. */
async function requestList(url: string, init: RequestInit, ask: typeof fetch = fetch): Promise<ModelList> {
  try {
    const response = await ask(url, { ...init, redirect: "error" })
    if (response.ok) return readAnswer(await readText(response))
    await response.body?.cancel()
    const { status } = response
    return [400, 401, 403].includes(status)
      ? { kind: "refused" }
      : { kind: "unknown", reason: `status ${status}` }
  } catch (error) {
    return { kind: "unknown", reason: errorMessage(error) }
  }
}

/** Reads the body as text. Throws `RangeError` if the body exceeds the limit. Leaving the loop cancels the stream. */
async function readText({ body }: Response): Promise<string> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of body ?? []) {
    bytes += chunk.length
    if (bytes > maxBytes) throw new RangeError(`The list of models is longer than ${maxBytes} bytes.`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString("utf8")
}

function readAnswer(text: string): ModelList {
  const parsed = parseJson(text)
  const { data } = Answer.safeParse(parsed.ok ? parsed.value : undefined)
  if (!data) return { kind: "unknown", reason: "the answer is not a list of models" }
  const ids =
    "data" in data
      ? data.data.map(({ id }) => id)
      : data.models.map(({ name }) => name.replace(/^models\//, ""))
  return { kind: "models", ids }
}
