import * as z from "zod"
import { parseJson } from "../util/json.ts"
import { providerTable } from "./provider-table.ts"

/** A model server on this machine. */
export interface LocalServer {
  /** The known provider that usually listens on the port, such as `ollama`. */
  providerID: string
  /**
   * Display name, such as `Ollama`. A different program may use the port, so ask the user before connecting to the
   * server.
   */
  name: string
  baseURL: string
  models: string[]
}

/**
 * Maximum time in milliseconds to wait for a server's response. A server on a busy machine may need several hundred
 * milliseconds. A closed port refuses the connection immediately.
 */
const timeoutMs = 1_000

/** Maximum size of a model list in bytes. */
const maxBytes = 1_000_000

const ModelList = z.lazy(() => z.object({ data: z.array(z.object({ id: z.string().min(1) })).max(10_000) }))

/**
 * Finds model servers (Ollama, LM Studio, llama.cpp, vLLM) on their usual ports of 127.0.0.1. Asks all ports for their
 * models in parallel and waits at most one second. `ports` replaces the usual ports, by provider id. Rejects only if
 * the signal is aborted.
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
      const models = await listModels(candidate.baseURL, signal, options.fetch ?? fetch)
      return models.length > 0 ? { ...candidate, models } : undefined
    }),
  )
  signal.throwIfAborted()
  return found.filter((server) => server !== undefined)
}

async function listModels(baseURL: string, signal: AbortSignal, ask: typeof fetch): Promise<string[]> {
  try {
    const response = await ask(`${baseURL}/models`, {
      signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
      // Does not follow redirects, which could lead to another machine.
      redirect: "error",
    })
    if (!response.ok || response.body === null) {
      await response.body?.cancel()
      return []
    }
    const json = parseJson(await readText(response.body))
    const list = json.ok ? ModelList.safeParse(json.value) : undefined
    return list?.success ? list.data.data.map(({ id }) => id) : []
  } catch {
    // The port is closed, or the server is too slow or does not speak HTTP.
    return []
  }
}

/** Reads the body as text. Throws if it exceeds the limit. Leaving the loop cancels the stream. */
async function readText(body: ReadableStream<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of body) {
    bytes += chunk.length
    if (bytes > maxBytes) throw new RangeError(`The response is longer than ${maxBytes} bytes.`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString("utf8")
}
