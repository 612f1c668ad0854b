import * as z from "zod"
import { parseJson } from "../util/json.ts"
import { providerTable } from "./provider-table.ts"

/** A model server that answers on this machine. */
export interface LocalServer {
  /** Of the known provider that usually listens there, such as `ollama`. */
  providerID: string
  /** For people: `Ollama`. What listens may be another program: nothing is taken unasked. */
  name: string
  baseURL: string
  models: string[]
}

/**
 * Milliseconds. A server on the same machine answers in a few, on a busy machine in some hundreds; where none listens the
 * answer is there at once.
 */
const patienceMs = 1_000

/** More is no list of models. */
const maxBytes = 1_000_000

const ModelList = z.lazy(() => z.object({ data: z.array(z.object({ id: z.string().min(1) })).max(10_000) }))

/**
 * The model servers on the usual ports of 127.0.0.1 (Ollama, LM Studio, llama.cpp, vLLM), asked all at once for their
 * models, within a second. Whatever does not answer with a list of models is none. `ports` replaces the usual ports, by
 * provider id. Never rejects but for the signal.
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
      signal: AbortSignal.any([signal, AbortSignal.timeout(patienceMs)]),
      // A redirect would lead away from this machine.
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
    // Nobody there, too slow, or not HTTP: all the same answer to the question asked.
    return []
  }
}

/** Throws for a body above the limit. Leaving the loop cancels the stream. */
async function readText(body: ReadableStream<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of body) {
    bytes += chunk.length
    if (bytes > maxBytes) throw new RangeError(`More than ${maxBytes} bytes.`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString("utf8")
}
