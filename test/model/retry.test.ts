import fc from "fast-check"
import { expect, test } from "vitest"
import { ProviderError, type ProviderErrorDetails } from "../../src/model/errors.ts"
import { readRetryAfter, retryDelay } from "../../src/model/retry.ts"

function fault(more: Partial<ProviderErrorDetails> = {}): ProviderError {
  return new ProviderError("failed", { kind: "overloaded", retryable: true, ...more })
}

test("doubles from one second, and stops after the fifth attempt", () => {
  const delays = [1, 2, 3, 4, 5].map((attempt) => retryDelay(attempt, fault(), () => 0))
  expect(delays).toEqual([1000, 2000, 4000, 8000, undefined])
})

test("adds at most a quarter at random and never exceeds 30 s", () => {
  const limits = { maxAttempts: 50, ceilingMs: 1 }
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 40 }),
      fc.double({ min: 0, max: 1, noNaN: true }),
      (attempt, random) => {
        const delay = retryDelay(attempt, fault(), () => random, limits) ?? Number.NaN
        const base = Math.min(1000 * 2 ** (attempt - 1), 30_000)
        expect(delay).toBeGreaterThanOrEqual(base)
        expect(delay).toBeLessThanOrEqual(Math.min(base * 1.25 + 1, 30_000))
      },
    ),
  )
})

test("uses the requested wait up to the ceiling", () => {
  expect(retryDelay(1, fault({ retryAfterMs: 0 }), () => 1)).toBe(0)
  expect(retryDelay(4, fault({ retryAfterMs: 120_000 }), () => 1)).toBe(120_000)
  expect(retryDelay(1, fault({ retryAfterMs: 120_001 }), () => 1)).toBeUndefined()
  expect(
    retryDelay(1, fault({ retryAfterMs: 120_001 }), () => 1, { maxAttempts: 5, ceilingMs: 200_000 }),
  ).toBe(120_001)
})

test("does not retry permanent errors", () => {
  expect(retryDelay(1, fault({ retryable: false, retryAfterMs: 1 }), () => 0)).toBeUndefined()
})

test.each([
  [{ "retry-after-ms": "250", "retry-after": "9" }, 250],
  [{ "retry-after": "2" }, 2000],
  [{ "retry-after": "1.5" }, 1500],
  [{ "retry-after": "Thu, 01 Jan 1970 00:01:00 GMT" }, 50_000],
  [{ "retry-after": "Thu, 01 Jan 1970 00:00:01 GMT" }, 0],
  [{ "retry-after": "soon" }, undefined],
  [{ "retry-after": "" }, undefined],
  [{}, undefined],
])("%j is %s", (headers, expected) => {
  expect(readRetryAfter(headers, 10_000)).toBe(expected)
})
