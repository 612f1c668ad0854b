import type { LanguageModelV4, LanguageModelV4CallOptions } from "@ai-sdk/provider"
import type { ModelRef } from "../schema/message.ts"
import type { DialectName } from "../synthetic/dialect.ts"
import { UsageError } from "../util/errors.ts"
import { modelName, type ToolCalling } from "./model.ts"
import { toolRefusal } from "./provider-error.ts"
import type { ToolSupport } from "./tool-support.ts"

/** A model's tool policy. */
interface ToolPolicyOptions {
  ref: ModelRef
  policy: ToolCalling
  /** The config key that sets the policy. */
  key: string
  /** Format of synthetic calls. If undefined, it depends on the model's name. */
  dialect: DialectName | undefined
  /** Records of models that reject requests with tools. Used by `auto`. */
  memory: ToolSupport
}

/**
 * Applies a tool policy to a model:
 * - `native`: sends tools to the server.
 * - `synthetic`: describes tools in the prompt and reads calls from the text.
 * - `reject`: throws `UsageError` for a request with tools. The message names the config key.
 * - `ignore`: removes the tools, and describes earlier calls as text.
 * - `auto`: acts as `native` until the server rejects tools, then as `synthetic`. Records the rejection under the
 *   model's name.
 */
export function withToolPolicy(language: LanguageModelV4, options: ToolPolicyOptions): LanguageModelV4 {
  const { ref, policy, dialect, memory } = options
  const name = modelName(ref)
  let loaded: Promise<LanguageModelV4> | undefined

  /** Loads the middleware on first use, since most servers accept tools and do not need it. */
  function synthetic(): Promise<LanguageModelV4> {
    loaded ??= import("../synthetic/middleware.ts").then(({ withSyntheticTools }) =>
      withSyntheticTools(language, { dialect }),
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
    `${name} cannot use tools, because ${key} is "reject". Set ${key} to "synthetic" to describe tools in the prompt, to "native" or "auto" if the server supports tools, or to "ignore" to send no tools.`,
    undefined,
    "model.tools-rejected",
  )
}
