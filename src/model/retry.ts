import type { ProviderError } from "./errors.ts"

/** Limits for retries of a step after temporary errors. */
export interface RetryLimits {
  /** Maximum number of attempts, including the first one. */
  maxAttempts: number
  /**
   * Maximum wait in milliseconds that a server may request. If a server requests a longer wait, the step fails with an
   * error that states the wait.
   */
  ceilingMs: number
}

/** Default limits: five attempts, and a requested wait of at most two minutes. */
export const defaultRetryLimits: RetryLimits = { maxAttempts: 5, ceilingMs: 120_000 }

const firstDelayMs = 1_000
const maxDelayMs = 30_000

/**
 * Returns the milliseconds to wait before the next attempt, or undefined if the step must not be retried. `attempt` is
 * the number of the failed attempt, from 1. Returns the delay that the server requests. If the server requests none,
 * the delay is 1, 2, 4, … seconds plus a random part of up to a quarter, at most 30 seconds. `random` returns a number
 * from 0 to 1 that determines the random part, so that clients do not all retry at the same time.
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
 * Returns the wait, in milliseconds, that the header `retry-after-ms` or `retry-after` (seconds or a date) requests.
 * Never negative. Returns undefined if both headers are missing or invalid. Header names must be in lower case. `now`
 * is in milliseconds since the epoch.
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
