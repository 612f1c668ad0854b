import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4Content,
  LanguageModelV4GenerateResult,
  LanguageModelV4Message,
  LanguageModelV4Middleware,
  LanguageModelV4StreamPart,
  LanguageModelV4StreamResult,
} from "@ai-sdk/provider"
import type { DialectName, SyntheticTool } from "./dialect.ts"
import { dialectFor, dialectNamed } from "./dialects.ts"
import { defaultRetries, describeTools, resultTexts, retryMessages, toTextPrompt } from "./prompt.ts"
import { createTranslator } from "./translate.ts"

/** Options for synthetic tool calling. */
export interface SyntheticOptions {
  /** Format for calls. Defaults to the format for the model's id, or else to `hermes`. */
  dialect?: DialectName
  /**
   * Maximum number of retries within one request after a malformed call, or after an answer without a required call.
   * Default: 2.
   */
  retries?: number
}

/**
 * Returns AI SDK middleware that adds tool calling to a model that does not support it. The middleware describes the
 * tools in the prompt and reads calls from the text of the answer. A call's `providerMetadata` describes repairs
 * (`tackle.repaired`). The finish part's `providerMetadata` contains the number of retries, if any (`tackle.retries`).
 * The middleware drops tools that the provider executes.
 *
 * The middleware does not use `transformParams`, because it needs the tools to read the answer and may call the model
 * several times for one request.
 */
export function syntheticTools(options: SyntheticOptions = {}): LanguageModelV4Middleware {
  return {
    specificationVersion: "v4",
    wrapStream: ({ model, params }) => stream(model, params, options),
    wrapGenerate: ({ model, params }) => generate(model, params, options),
  }
}

/** Applies {@link syntheticTools} to a model. Does not need `wrapLanguageModel` from the AI SDK. */
export function withSyntheticTools(model: LanguageModelV4, options: SyntheticOptions = {}): LanguageModelV4 {
  return {
    specificationVersion: "v4",
    provider: model.provider,
    modelId: model.modelId,
    get supportedUrls() {
      return model.supportedUrls
    },
    doStream: (params) => stream(model, params, options),
    doGenerate: (params) => generate(model, params, options),
  }
}

/** A request that describes its tools as text, with the settings for reading the answer. */
interface TextRequest {
  params: LanguageModelV4CallOptions
  /** Tools that the model may call. If empty, the answer is not searched for calls. */
  tools: readonly SyntheticTool[]
  dialect: DialectName
  /** Texts of the tool results in the history. A call that repeats a part of one of them is a quotation. */
  quotable: readonly string[]
  retries: number
  choice: LanguageModelV4CallOptions["toolChoice"]
}

function asText(
  model: LanguageModelV4,
  params: LanguageModelV4CallOptions,
  options: SyntheticOptions,
): TextRequest {
  const { tools: given = [], toolChoice: choice, ...rest } = params
  const tools: SyntheticTool[] = given.flatMap((tool) =>
    tool.type === "function"
      ? [{ name: tool.name, description: tool.description, inputSchema: { ...tool.inputSchema } }]
      : [],
  )
  const name = options.dialect ?? dialectFor(model.modelId)
  const dialect = dialectNamed(name)
  const instructions = describeTools({ tools, dialect, choice })
  return {
    params: { ...rest, prompt: toTextPrompt(params.prompt, dialect, instructions) },
    tools: callable(tools, choice),
    dialect: name,
    quotable: resultTexts(params.prompt),
    retries: options.retries ?? defaultRetries,
    choice,
  }
}

/** Returns the tools that `toolChoice` allows the model to call. */
function callable(
  tools: readonly SyntheticTool[],
  choice: LanguageModelV4CallOptions["toolChoice"],
): readonly SyntheticTool[] {
  if (choice?.type === "none") return []
  return choice?.type === "tool" ? tools.filter(({ name }) => name === choice.toolName) : tools
}

/** Returns the messages that ask for another attempt, or undefined if the answer is final. */
function nextMessages(
  request: TextRequest,
  translator: ReturnType<typeof createTranslator>,
  attempt: number,
): LanguageModelV4Message[] | undefined {
  const outcome = translator.outcome()
  if (outcome === undefined || attempt >= request.retries || request.params.abortSignal?.aborted)
    return undefined
  const { tools, choice } = request
  return retryMessages(outcome, { tools, choice, dialect: dialectNamed(request.dialect) })
}

function withMore(request: TextRequest, more: readonly LanguageModelV4Message[]): LanguageModelV4CallOptions {
  return { ...request.params, prompt: [...request.params.prompt, ...more] }
}

async function stream(
  model: LanguageModelV4,
  params: LanguageModelV4CallOptions,
  options: SyntheticOptions,
): Promise<LanguageModelV4StreamResult> {
  const request = asText(model, params, options)
  const first = await model.doStream(request.params)
  if (request.tools.length === 0) return first
  let reader = first.stream.getReader()
  let cancelled = false

  async function* answer(): AsyncGenerator<LanguageModelV4StreamPart, void, undefined> {
    const translator = createTranslator(request)
    for (let attempt = 0; ; attempt++) {
      for (;;) {
        const { done, value } = await reader.read()
        if (done) break
        yield* translator.take(value)
      }
      const more = cancelled ? undefined : nextMessages(request, translator, attempt)
      if (more === undefined) break
      translator.again()
      const next = await model.doStream(withMore(request, more))
      reader = next.stream.getReader()
      if (cancelled) await reader.cancel()
    }
    yield* translator.end()
  }

  const parts = answer()
  return {
    ...first,
    stream: new ReadableStream<LanguageModelV4StreamPart>(
      {
        async pull(controller) {
          const { done, value } = await parts.next()
          if (cancelled) return
          if (done) controller.close()
          else controller.enqueue(value)
        },
        // Cancels the reader directly, because the generator may be waiting for a part that never arrives.
        async cancel(reason) {
          cancelled = true
          await reader.cancel(reason)
        },
      },
      { highWaterMark: 0 },
    ),
  }
}

async function generate(
  model: LanguageModelV4,
  params: LanguageModelV4CallOptions,
  options: SyntheticOptions,
): Promise<LanguageModelV4GenerateResult> {
  const request = asText(model, params, options)
  let result = await model.doGenerate(request.params)
  if (request.tools.length === 0) return result
  const translator = createTranslator(request)
  const parts: LanguageModelV4StreamPart[] = []
  for (let attempt = 0; ; attempt++) {
    for (const part of toParts(result)) parts.push(...translator.take(part))
    const more = nextMessages(request, translator, attempt)
    if (more === undefined) break
    translator.again()
    result = await model.doGenerate(withMore(request, more))
  }
  parts.push(...translator.end())
  return { ...result, ...fromParts(parts) }
}

/** Converts a complete answer to stream parts. */
function* toParts(result: LanguageModelV4GenerateResult): Generator<LanguageModelV4StreamPart> {
  for (const [index, content] of result.content.entries()) {
    const id = String(index)
    const metadata = content.providerMetadata && { providerMetadata: content.providerMetadata }
    if (content.type === "text") {
      yield { type: "text-start", id, ...metadata }
      yield { type: "text-delta", id, delta: content.text }
      yield { type: "text-end", id }
    } else if (content.type === "reasoning") {
      yield { type: "reasoning-start", id }
      yield { type: "reasoning-delta", id, delta: content.text }
      yield { type: "reasoning-end", id, ...metadata }
    } else yield content
  }
  const { finishReason, usage, providerMetadata } = result
  yield { type: "finish", finishReason, usage, providerMetadata }
}

/** Assembles a complete answer from stream parts. */
function fromParts(
  parts: readonly LanguageModelV4StreamPart[],
): Pick<LanguageModelV4GenerateResult, "content"> &
  Partial<Pick<LanguageModelV4GenerateResult, "finishReason" | "usage" | "providerMetadata">> {
  const content: LanguageModelV4Content[] = []
  let block: Extract<LanguageModelV4Content, { type: "text" | "reasoning" }> | undefined
  for (const part of parts) {
    switch (part.type) {
      case "text-start":
      case "reasoning-start": {
        const type = part.type === "text-start" ? "text" : "reasoning"
        const metadata = part.providerMetadata && { providerMetadata: part.providerMetadata }
        const begun: NonNullable<typeof block> = { type, text: "", ...metadata }
        content.push(begun)
        block = begun
        break
      }
      case "text-delta":
      case "reasoning-delta":
        if (block) block.text += part.delta
        break
      case "reasoning-end":
        if (block && part.providerMetadata) block.providerMetadata = part.providerMetadata
        break
      case "finish": {
        const { finishReason, usage, providerMetadata } = part
        return { content, finishReason, usage, providerMetadata }
      }
      case "text-end":
      case "tool-input-start":
      case "tool-input-delta":
      case "tool-input-end":
      case "stream-start":
      case "response-metadata":
      case "raw":
      case "ping":
      case "error":
        break
      default:
        content.push(part)
    }
  }
  return { content }
}
