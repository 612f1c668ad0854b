import type { ModelRef } from "../schema/message.ts"
import { TackleError, UsageError } from "../util/errors.ts"
import { nearNames } from "../util/similarity.ts"
import { modelName } from "./model.ts"

/**
 * Why a provider failed. `overloaded`: it cannot serve now. `bad-response`: it answered with something that is no
 * answer, or the answer broke off. `aborted`: it gave up by itself; our own abort is an `AbortedError`.
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

/** What a {@link ProviderError} carries beside its text. */
export interface ProviderErrorDetails {
  kind: ProviderErrorKind
  /** True: the same request may succeed later. */
  retryable: boolean
  /** HTTP status, where there was an answer. */
  status?: number
  /** Milliseconds that the server asks to wait. */
  retryAfterMs?: number
  cause?: unknown
}

/** A model's server could not be asked, or answered with an error. The message names it and the next move. */
export class ProviderError extends TackleError {
  readonly kind: ProviderErrorKind
  readonly retryable: boolean
  readonly status: number | undefined
  readonly retryAfterMs: number | undefined
  constructor(message: string, fault: ProviderErrorDetails) {
    super(message, { code: `provider.${fault.kind}`, recoverable: false, cause: fault.cause })
    this.kind = fault.kind
    this.retryable = fault.retryable
    this.status = fault.status
    this.retryAfterMs = fault.retryAfterMs
  }
}

/** There is no such provider or no such model of it. */
export class ModelNotFoundError extends UsageError {
  /** `known`: names of models (`provider/model`) and of providers (`provider/…`). */
  constructor(ref: ModelRef, known: readonly string[]) {
    const name = modelName(ref)
    const near = nearNames(name, known, Math.max(2, Math.floor(name.length / 3))).slice(0, 5)
    const more = known.length > 20 ? ` and ${known.length - 20} more (\`tackle models\` shows them)` : ""
    const listed = `${known.slice(0, 20).join(", ") || "none"}${more}`
    const hint = near.length > 0 ? `Did you mean ${near.join(" or ")}?` : `Known: ${listed}.`
    super(
      `There is no model ${name}. ${hint} Further ones are declared in the config under "provider".`,
      undefined,
      "model.not-found",
    )
  }
}
