import type { ModelRef } from "../schema/message.ts"
import { TackleError, UsageError } from "../util/errors.ts"
import { didYouMean } from "../util/similarity.ts"
import { modelName } from "./model.ts"

/**
 * The reason why a provider failed. `overloaded`: the provider is temporarily unavailable. `bad-response`: its answer
 * is invalid or incomplete. `aborted`: the provider aborted the request. An abort by the caller is an `AbortedError`
 * instead.
 */
export type ProviderErrorKind =
  | "auth"
  | "rate-limit"
  | "overloaded"
  | "network"
  | "timeout"
  | "context-overflow"
  | "bad-response"
  | "aborted"
  | "unknown"

/** Details of a {@link ProviderError}. */
export interface ProviderErrorDetails {
  kind: ProviderErrorKind
  /** True if the same request may succeed later. */
  retryable: boolean
  /** HTTP status, if the server answered. */
  status?: number
  /** Wait requested by the server, in milliseconds. */
  retryAfterMs?: number
  cause?: unknown
}

/** Thrown when a model's server cannot be reached, or returns an error or an invalid answer. */
export class ProviderError extends TackleError {
  readonly kind: ProviderErrorKind
  readonly retryable: boolean
  readonly status: number | undefined
  readonly retryAfterMs: number | undefined
  constructor(message: string, details: ProviderErrorDetails) {
    super(message, { code: `provider.${details.kind}`, recoverable: false, cause: details.cause })
    this.kind = details.kind
    this.retryable = details.retryable
    this.status = details.status
    this.retryAfterMs = details.retryAfterMs
  }
}

/** Thrown when the provider or the model is unknown. */
export class ModelNotFoundError extends UsageError {
  /** `known` contains the names of models (`provider/model`) and providers (`provider/…`) to suggest. */
  constructor(ref: ModelRef, known: readonly string[]) {
    const name = modelName(ref)
    const more = known.length > 20 ? ` and ${known.length - 20} more (\`tackle models\` shows them)` : ""
    const listed = `${known.slice(0, 20).join(", ") || "none"}${more}`
    const hint = didYouMean(name, known) ?? `Known: ${listed}.`
    super(
      `The model ${name} is unknown. ${hint} To use another model, declare it under "provider" in the config.`,
      undefined,
      "model.not-found",
    )
  }
}
