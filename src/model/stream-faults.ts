import type { LanguageModelV4StreamResult } from "@ai-sdk/provider"
import { ProviderError } from "./errors.ts"

/** The server stays silent: asking again may help. */
export function silence(model: string, ms: number): ProviderError {
  return new ProviderError(
    `${model}: the server sent nothing for ${ms / 1000} s. Where it needs longer, raise timeout in the config.`,
    { kind: "timeout", retryable: true },
  )
}

/** The connection ended before the answer did: asking again may help. */
export function noEnd(model: string): ProviderError {
  return new ProviderError(`${model}: the answer broke off before its end.`, {
    kind: "bad-response",
    retryable: true,
  })
}

/** A page of some other program at this address: asking again will not help. */
export function wrongFormat(
  model: string,
  { response }: LanguageModelV4StreamResult,
): ProviderError | undefined {
  const type = response?.headers?.["content-type"]
  if (type === undefined || !/^text\/html/.test(type)) return undefined
  return new ProviderError(
    `${model}: the server answered with a web page (${type}) instead of a model's answer. Check the provider's baseURL in the config (it usually ends in /v1).`,
    { kind: "bad-response", retryable: false },
  )
}
