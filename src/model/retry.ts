import type { ProviderError } from "./errors.ts"

/** How long a step is tried again after faults that may pass. */
export interface RetryLimits {
  /** Attempts in all, the first one included. */
  maxAttempts: number
  /** The longest wait that a server may ask for; above it the step fails and its error says how long to wait. */
  ceilingMs: number
}

/** Five attempts; a server may ask for two minutes. */
export const defaultRetryLimits: RetryLimits = { maxAttempts: 5, ceilingMs: 120_000 }

const firstDelayMs = 1_000
const maxDelayMs = 30_000

/**
 * Milliseconds to wait before the next attempt, or undefined where there shall be none. `attempt` is the one that just
 * failed, from 1. What the server asks for is kept to exactly; else 1 s, 2 s, 4 s… up to 30 s, each with up to a
 * quarter added by `random` (0 to 1), so that many clients do not come back at once.
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
 * What `retry-after-ms` or `retry-after` (seconds or a date) say, in milliseconds, never negative. Undefined where
 * they are missing or make no sense. Header names in lower case; `now` in milliseconds since the epoch.
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
