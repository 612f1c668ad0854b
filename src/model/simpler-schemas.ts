import type { LanguageModelV4, LanguageModelV4CallOptions } from "@ai-sdk/provider"
import type { ModelRef } from "../schema/message.ts"
import { isRecord } from "../util/json.ts"
import type { JsonSchema } from "../util/json-schema.ts"
import { ProviderError } from "./errors.ts"
import { toolRefusal, toProviderError } from "./provider-error.ts"
import { transformSchema, withoutTextRules } from "./schema-transforms.ts"

/**
 * Wraps a model whose server may reject the schemas of tools, for example because it cannot convert them to a grammar.
 * After such a rejection, the request is repeated once without `pattern`, `format` and limits of lengths. If the server
 * accepts it, all later requests are sent in this form. If the server rejects the schemas again, the error names the
 * tool. The tools still validate their arguments.
 */
export function withSimplerSchemas(language: LanguageModelV4, ref: ModelRef): LanguageModelV4 {
  let simpler = false

  async function send<T>(
    call: LanguageModelV4CallOptions,
    ask: (call: LanguageModelV4CallOptions) => PromiseLike<T>,
  ): Promise<T> {
    const simple = simplified(call)
    if (simpler) return await askNamed(simple, ask)
    try {
      return await ask(call)
    } catch (error) {
      if (!rejectsSchema(error, call)) throw error
      if (simple === call) throw named(error, call, ref)
      const answer = await askNamed(simple, ask)
      simpler = true
      return answer
    }
  }

  async function askNamed<T>(
    call: LanguageModelV4CallOptions,
    ask: (call: LanguageModelV4CallOptions) => PromiseLike<T>,
  ): Promise<T> {
    try {
      return await ask(call)
    } catch (error) {
      throw rejectsSchema(error, call) ? named(error, call, ref) : error
    }
  }

  return {
    specificationVersion: "v4",
    provider: language.provider,
    modelId: language.modelId,
    get supportedUrls() {
      return language.supportedUrls
    },
    doStream: (call) => send(call, (given) => language.doStream(given)),
    doGenerate: (call) => send(call, (given) => language.doGenerate(given)),
  }
}

/** Returns the request with simpler schemas, or the same object if its schemas are already simple. */
function simplified(call: LanguageModelV4CallOptions): LanguageModelV4CallOptions {
  const tools = call.tools?.map((tool) => {
    if (tool.type !== "function") return tool
    const inputSchema = transformSchema(tool.inputSchema as JsonSchema, simple)
    return inputSchema === tool.inputSchema ? tool : { ...tool, inputSchema }
  })
  const format = call.responseFormat
  const schema = format?.type === "json" ? format.schema : undefined
  const simpleSchema = schema && transformSchema(schema as JsonSchema, simple)
  const isSame = simpleSchema === schema && (tools ?? []).every((tool, index) => tool === call.tools?.[index])
  if (isSame) return call
  return {
    ...call,
    ...(tools ? { tools } : {}),
    ...(format?.type === "json" && simpleSchema
      ? { responseFormat: { ...format, schema: simpleSchema } }
      : {}),
  }
}

const simple = [withoutTextRules]

/** Words with which servers reject a schema: llama.cpp, vLLM, Google, OpenAI, Anthropic and others. */
const words =
  /grammar|schema|function_?declarations?|\b(?:pattern|regex|m(?:in|ax)_?(?:length|items))\b|\bformat\b.{0,40}\b(?:supported|unknown|only)\b/i

/** Returns true if the server rejects the request because of a schema. Some servers report this with status 500. */
function rejectsSchema(error: unknown, { tools = [], responseFormat }: LanguageModelV4CallOptions): boolean {
  if (!isRecord(error) || (tools.length === 0 && responseFormat?.type !== "json")) return false
  if (toolRefusal(error) !== undefined) return false
  return [400, 422, 500].includes(Number(error.statusCode)) && words.test(textOf(error))
}

function textOf(error: unknown): string {
  if (!isRecord(error)) return ""
  return `${String(error.message)} ${String(error.responseBody ?? "").slice(0, 8_192)}`
}

/** Adds the tools whose schema the server probably rejects to the error's message. */
function named(error: unknown, { tools = [] }: LanguageModelV4CallOptions, ref: ModelRef): ProviderError {
  const { message, kind, status, cause } = toProviderError(error, ref)
  const names = suspects(textOf(error), tools).slice(0, 5)
  const which = names.length === 1 ? `the tool ${names[0]}` : `one of these tools: ${names.join(", ")}`
  const hint = ` The server rejects the schema of ${which}. Correct its parameters, or disable the tool.`
  return new ProviderError(names.length === 0 ? message : message + hint, {
    kind,
    retryable: false,
    ...(status === undefined ? {} : { status }),
    cause,
  })
}

type Tools = NonNullable<LanguageModelV4CallOptions["tools"]>

/**
 * Returns the tools that the message names or numbers, or else the tools with keywords that grammars
 * often do not support.
 */
function suspects(message: string, tools: Tools): string[] {
  const numbers = [...message.matchAll(/\b(?:tools|function_?declarations)(?:\[|\.)(\d+)/gi)].map(
    ([, index]) => Number(index),
  )
  const numbered = tools.filter((_, index) => numbers.at(-1) === index)
  const mentioned = tools.filter(({ name }) => new RegExp(`(?<![\\w-])${name}(?![\\w-])`).test(message))
  const unusual = tools.filter(
    (tool) => tool.type === "function" && rare.test(JSON.stringify(tool.inputSchema)),
  )
  const found = [mentioned, numbered, unusual].find((list) => list.length > 0) ?? []
  return found.map(({ name }) => name)
}

const rare =
  /"(?:\$ref|not|if|allOf|oneOf|patternProperties|propertyNames|prefixItems|contains|unevaluatedProperties|dependentSchemas)":/
