import type { LanguageModelV4, LanguageModelV4CallOptions } from "@ai-sdk/provider"
import type { ModelRef } from "../schema/message.ts"
import type { DialectName } from "../synthetic/dialect.ts"
import { UsageError } from "../util/errors.ts"
import { modelName, type ToolCalling } from "./model.ts"
import { toolRefusal } from "./provider-error.ts"
import type { ToolSupport } from "./tool-support.ts"

/** The policy for one model, and where it comes from. */
interface ToolPolicyOptions {
  ref: ModelRef
  policy: ToolCalling
  /** The config's key that says so, or where it would be said. */
  key: string
  /** How the model is told to write calls; by its name, where this is missing. */
  dialect: DialectName | undefined
  /** What `auto` learned, and where it puts what it learns. */
  memory: ToolSupport
}

/**
 * The model under a policy for tools:
 * - `native`: they go to the server.
 * - `synthetic`: they go into the prompt, and calls are read out of the text.
 * - `reject`: a request with tools is refused before it is sent, by a `UsageError` that names the key to change.
 * - `ignore`: they are left out, and the model answers in words.
 * - `auto`: native until the server refuses tools, and from that request on, remembered by the model's name, synthetic.
 */
export function withToolPolicy(language: LanguageModelV4, options: ToolPolicyOptions): LanguageModelV4 {
  const { ref, policy, dialect, memory } = options
  const name = modelName(ref)
  let loaded: Promise<LanguageModelV4> | undefined

  /** Loaded when it is first needed: most servers take tools. */
  function synthetic(): Promise<LanguageModelV4> {
    loaded ??= import("../synthetic/middleware.ts").then(({ withSyntheticTools }) =>
      withSyntheticTools(language, dialect === undefined ? {} : { dialect }),
    )
    return loaded
  }

  async function choose<T>(
    call: LanguageModelV4CallOptions,
    ask: (model: LanguageModelV4, call: LanguageModelV4CallOptions) => PromiseLike<T>,
  ): Promise<T> {
    switch (policy) {
      case "native":
        return await ask(language, call)
      case "synthetic":
        return await ask(await synthetic(), call)
      case "ignore":
        return await ask(await synthetic(), withoutTools(call))
      case "reject":
        if (hasTools(call)) throw rejection(name, options.key)
        return await ask(language, call)
      case "auto": {
        if (memory.refused(name) !== undefined) return await ask(await synthetic(), call)
        try {
          return await ask(language, call)
        } catch (error) {
          const reason = hasTools(call) ? toolRefusal(error) : undefined
          if (reason === undefined) throw error
          memory.remember(name, reason)
          return await ask(await synthetic(), call)
        }
      }
    }
  }

  return {
    specificationVersion: "v4",
    provider: language.provider,
    modelId: language.modelId,
    get supportedUrls() {
      return language.supportedUrls
    },
    doStream: (call) => choose(call, (model, given) => model.doStream(given)),
    doGenerate: (call) => choose(call, (model, given) => model.doGenerate(given)),
  }
}

function hasTools({ tools = [] }: LanguageModelV4CallOptions): boolean {
  return tools.length > 0
}

function withoutTools({ tools: _, toolChoice: _choice, ...call }: LanguageModelV4CallOptions) {
  return call
}

function rejection(name: string, key: string): UsageError {
  return new UsageError(
    `${name} is not given any tools, since ${key} is "reject". Set ${key} to "synthetic" to have tools described in the prompt and calls read from the text, to "native" or "auto" if the server takes tools, or to "ignore" to have an answer in words.`,
    undefined,
    "model.tools-rejected",
  )
}
