import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4StreamPart,
  LanguageModelV4StreamResult,
  LanguageModelV4Usage,
  SharedV4ProviderMetadata,
} from "@ai-sdk/provider"
import type { FinishReason, Tokens } from "../schema/part.ts"
import { orAbort, throwIfAborted } from "../util/abort.ts"
import { UsageError } from "../util/errors.ts"
import { tooLong } from "./answer-guard.ts"
import { type CallRequest, callOptions } from "./call-options.ts"
import { ProviderError } from "./errors.ts"
import { readFinishReason } from "./finish-reason.ts"
import { type ModelInfo, modelName } from "./model.ts"
import { toProviderError } from "./provider-error.ts"
import { type StreamWatch, watchStream } from "./stream-watch.ts"

/** Timeouts for a streamed answer, in milliseconds. */
export interface StreamLimits {
  /** Maximum time until the answer begins. */
  firstByteMs: number
  /** Maximum silence within the answer. Only the time in which the caller waits for an event counts. */
  idleMs: number
}

/** Default timeouts: five minutes each, as in Node's `fetch`. Slow local models need this time. */
export const defaultStreamLimits: StreamLimits = { firstByteMs: 300_000, idleMs: 300_000 }

/** Maximum time in milliseconds between the finish part and the end of the stream. */
const closingMs = 1_000

/** Maximum number of characters of text, reasoning and arguments in one answer. */
const maxAnswerLength = 8 * 2 ** 20

/** Maximum number of calls in one answer. */
const maxCalls = 128

/** A request to a model. `info.timeouts` overrides `limits`. */
export interface StepRequest extends CallRequest {
  signal: AbortSignal
  limits?: Partial<StreamLimits>
}

/**
 * An event of a streamed answer. `id` and `callID` come from the provider. They identify the block or call that the
 * event belongs to, and may be reused in the next answer.
 */
export type StepEvent =
  | {
      type: "text-start" | "text-end" | "reasoning-start" | "reasoning-end"
      id: string
      /** Metadata that later requests must send back with this block. Complete only at the end of the block. */
      metadata?: Record<string, unknown>
    }
  | { type: "text-delta" | "reasoning-delta"; id: string; delta: string }
  | { type: "tool-start"; callID: string; tool: string }
  | { type: "tool-delta"; callID: string; delta: string }
  | {
      type: "tool-call"
      callID: string
      tool: string
      /** Arguments as the model wrote them. They may be invalid JSON. */
      input: string
      metadata?: Record<string, unknown>
    }
  | {
      type: "finish"
      reason: FinishReason
      /** The server's word for the reason, if the answer ended early. */
      raw?: string
      tokens: Tokens
    }

/**
 * Requests one step and streams the answer. The event `finish` comes exactly once, at the end. A `tool-call` may come
 * without a `tool-start`. Execute calls only after `finish`, since an incomplete answer may contain a truncated call.
 * Throws {@link ProviderError} if the provider fails, `UsageError` if the config forbids the request, and the error
 * from `abortedError` if the signal aborts. Leaving the loop early closes the connection.
 */
export async function* streamStep(request: StepRequest): AsyncGenerator<StepEvent, void, undefined> {
  const { language, info } = request
  const ref = info?.ref ?? { providerID: language.provider, modelID: language.modelId }
  const { firstByteMs, idleMs } = { ...defaultStreamLimits, ...request.limits }
  const limits = {
    firstByteMs: info?.timeouts?.firstByteMs ?? firstByteMs,
    idleMs: info?.timeouts?.idleMs ?? idleMs,
  }
  throwIfAborted(request.signal)
  const watch = watchStream(request.signal, limits.firstByteMs, (ms) =>
    silence(ref, ms, { begun, timeouts: info?.timeouts }),
  )
  let reader: ReadableStreamDefaultReader<LanguageModelV4StreamPart> | undefined
  let begun = false
  const cancel = () => void reader?.cancel(watch.stopped).catch(ignoreLateFailure)
  try {
    const result = await open(language, callOptions(request, watch.signal), watch)
    reader = result.stream.getReader()
    watch.signal.addEventListener("abort", cancel, { once: true })
    const blocks = new Map<string, Record<string, unknown>>()
    let finish: StepEvent | undefined
    let length = 0
    let calls = 0
    watch.wait()
    for (;;) {
      const { done, value } = await reader.read()
      if (done || watch.stopped !== undefined) break
      // Empty parts do not prove that the server is working on the answer, so they do not restart the idle timeout.
      if (!isProgress(value)) continue
      watch.answered()
      if (!begun && value.type !== "error") {
        begun = true
        watch.setLimit(limits.idleMs)
      }
      length += "delta" in value ? value.delta.length : value.type === "tool-call" ? value.input.length : 0
      if (value.type === "tool-call") calls += 1
      if (length > maxAnswerLength || calls > maxCalls) {
        const limit = calls > maxCalls ? `${maxCalls} calls` : `${maxAnswerLength} characters`
        throw tooLong(`${modelName(ref)}: the answer exceeds the limit of ${limit}.`)
      }
      switch (value.type) {
        case "text-delta":
        case "reasoning-delta":
          if (value.providerMetadata !== undefined) remember(blocks, value.id, value.providerMetadata)
          yield value
          break
        case "tool-input-delta":
          yield { type: "tool-delta", callID: value.id, delta: value.delta }
          break
        case "tool-input-start":
          if (!value.providerExecuted)
            yield { type: "tool-start", callID: value.id, tool: value.toolName.trim() || "invalid" }
          break
        case "tool-call":
          if (!value.providerExecuted) yield toolCall(value)
          break
        case "text-start":
        case "text-end":
        case "reasoning-start":
        case "reasoning-end":
          if (value.providerMetadata !== undefined) remember(blocks, value.id, value.providerMetadata)
          yield blockEvent(value.type, value.id, blocks.get(value.id))
          if (value.type.endsWith("-end")) blocks.delete(value.id)
          break
        case "finish":
          if (value.finishReason.unified === "interrupted") throw incompleteAnswer(modelName(ref))
          finish = {
            type: "finish",
            ...readFinishReason(value.finishReason),
            tokens: readTokens(value.usage),
          }
          watch.setLimit(closingMs)
          break
        case "error":
          throw begun ? value.error : (wrongFormat(modelName(ref), result) ?? value.error)
      }
      watch.wait()
    }
    throwIfAborted(request.signal)
    if (finish === undefined) throw watch.stopped ?? incompleteAnswer(modelName(ref))
    yield finish
  } catch (error) {
    // Do not report an error in the config as a provider error.
    if (watch.stopped === undefined && error instanceof UsageError) throw error
    throw watch.stopped ?? toProviderError(error, ref, { streamed: begun })
  } finally {
    watch.end()
    watch.signal.removeEventListener("abort", cancel)
    cancel()
  }
}

/** Waits for the beginning of the answer. Cancels an answer that begins after the watch has ended. */
async function open(
  language: LanguageModelV4,
  options: LanguageModelV4CallOptions,
  watch: StreamWatch,
): Promise<LanguageModelV4StreamResult> {
  const answer = Promise.resolve(language.doStream(options))
  try {
    return await orAbort(answer, watch.signal)
  } catch (error) {
    answer.then(({ stream }) => stream.cancel(error)).catch(ignoreLateFailure)
    throw error
  }
}

/** Returns true if the part shows that the model works on its answer. */
function isProgress(part: LanguageModelV4StreamPart): boolean {
  switch (part.type) {
    case "text-delta":
    case "reasoning-delta":
    case "tool-input-delta":
      return part.delta !== "" || part.providerMetadata !== undefined
    case "stream-start":
    case "response-metadata":
    case "raw":
    case "ping":
      return false
    default:
      return true
  }
}

function toolCall(part: Extract<LanguageModelV4StreamPart, { type: "tool-call" }>): StepEvent {
  const { toolCallId: callID, toolName, input, providerMetadata: metadata } = part
  return { type: "tool-call", callID, tool: toolName.trim() || "invalid", input, metadata }
}

function blockEvent(
  type: "text-start" | "text-end" | "reasoning-start" | "reasoning-end",
  id: string,
  metadata: Record<string, unknown> | undefined,
): StepEvent {
  return metadata === undefined ? { type, id } : { type, id, metadata: { ...metadata } }
}

/** Collects the metadata of a block. Providers spread it over several events. */
function remember(
  blocks: Map<string, Record<string, unknown>>,
  id: string,
  metadata: SharedV4ProviderMetadata,
): void {
  const known = blocks.get(id) ?? {}
  for (const [provider, values] of Object.entries(metadata)) {
    known[provider] = { ...(known[provider] as object | undefined), ...values }
  }
  blocks.set(id, known)
}

/** Ignores errors from a canceled stream. */
function ignoreLateFailure(): void {}

/**
 * Converts token counts. `input` excludes cached tokens, and `output` excludes reasoning. If the server does not report
 * these two counts, they are computed from the totals. Other missing or invalid counts are 0.
 */
function readTokens(usage: Partial<LanguageModelV4Usage> | null | undefined): Tokens {
  const { inputTokens, outputTokens } = usage ?? {}
  const read = readCount(inputTokens?.cacheRead) ?? 0
  const write = readCount(inputTokens?.cacheWrite) ?? 0
  const reasoning = readCount(outputTokens?.reasoning) ?? 0
  return {
    input:
      readCount(inputTokens?.noCache) ?? Math.max(0, (readCount(inputTokens?.total) ?? 0) - read - write),
    output: readCount(outputTokens?.text) ?? Math.max(0, (readCount(outputTokens?.total) ?? 0) - reasoning),
    reasoning,
    cache: { read, write },
  }
}

/**
 * Returns a valid token count unchanged. Returns undefined for any other value, because some servers report text or
 * negative numbers.
 */
function readCount(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) && value >= 0 ? value : undefined
}

/**
 * Returns the retryable error for a server that has sent nothing for `ms` milliseconds. The message names the config
 * key that sets this limit. `begun` is true if the answer has begun.
 */
function silence(
  ref: ModelInfo["ref"],
  ms: number,
  { begun, timeouts }: { begun: boolean; timeouts: ModelInfo["timeouts"] },
): ProviderError {
  const own = begun ? timeouts?.idleMs : timeouts?.firstByteMs
  const key =
    own === undefined
      ? `timeout.${begun ? "idleSeconds" : "firstByteSeconds"}`
      : `provider.${ref.providerID}.options.${begun ? "chunkTimeout" : "headerTimeout"}`
  return new ProviderError(
    `${modelName(ref)}: the server sent nothing for ${ms / 1000} s. If it needs more time, increase ${key} in the config.`,
    { kind: "timeout", retryable: true },
  )
}

/** Returns the retryable error for an incomplete answer. */
function incompleteAnswer(model: string): ProviderError {
  return new ProviderError(`${model}: the answer ended before it was complete.`, {
    kind: "bad-response",
    retryable: true,
  })
}

/** Returns an error if the server sent a web page instead of an answer. */
function wrongFormat(model: string, { response }: LanguageModelV4StreamResult): ProviderError | undefined {
  const type = response?.headers?.["content-type"]
  if (type === undefined || !/^text\/html/.test(type)) return undefined
  return new ProviderError(
    `${model}: the server returned a web page (${type}) instead of a model's answer. Check the provider's baseURL in the config (it usually ends in /v1).`,
    { kind: "bad-response", retryable: false },
  )
}
