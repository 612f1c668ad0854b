import type { ProviderError } from "./errors.ts"

/** Limits for retries of a step after temporary errors. */
export interface RetryLimits {
  /** Maximum number of attempts, including the first one. */
  maxAttempts: number
  /** Maximum wait that a server may request. Above it, the step fails with an error that names the wait. */
  ceilingMs: number
}

/** Five attempts and at most two minutes of requested wait. */
export const defaultRetryLimits: RetryLimits = { maxAttempts: 5, ceilingMs: 120_000 }

const firstDelayMs = 1_000
const maxDelayMs = 30_000

/**
 * Returns the milliseconds before the next attempt, or undefined for no retry. `attempt` is the failed one, from 1. Uses
 * the wait that the server requests, else 1 s, 2 s, 4 s … up to 30 s. `random` (0 to 1) adds up to a quarter, so that
 * clients do not retry at the same time.
 */
export function retryDelay(
  attempt: number,
  error: ProviderError,
  random: () => number,
  limits: RetryLimits = defaultRetryLimits,
): number | undefined {
  if (!error.retryable || attempt >= limits.maxAttempts) return undefined
  if (error.retryAfterMs !== undefined) {
    return error.retryAfterMs <= limits.ceilingMs ? error.retryAfterMs : undefined
  }
  const delay = firstDelayMs * 2 ** (attempt - 1)
  return Math.round(Math.min(delay * (1 + random() / 4), maxDelayMs))
}

/**
 * Reads `retry-after-ms` or `retry-after` (seconds or a date) in milliseconds, never negative. Undefined if they are
 * missing or invalid. Header names are in lower case; `now` is in milliseconds since the epoch.
 */
export function readRetryAfter(
  headers: Readonly<Record<string, string | undefined>>,
  now: number,
): number | undefined {
  const milliseconds = number(headers["retry-after-ms"])
  if (milliseconds !== undefined) return milliseconds
  const text = headers["retry-after"]
  const seconds = number(text)
  if (seconds !== undefined) return seconds * 1000
  const date = Date.parse(text ?? "")
  return Number.isNaN(date) ? undefined : Math.max(0, date - now)
}

function number(text: string | undefined): number | undefined {
  return text !== undefined && /^\s*\d+(\.\d+)?\s*$/.test(text) ? Number(text) : undefined
}
