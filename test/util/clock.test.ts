import { afterEach, expect, test, vi } from "vitest"
import { currentTime } from "../../src/util/time.ts"

afterEach(() => vi.restoreAllMocks())

test("continues from the last time if the system clock is set back", () => {
  const real = Date.now.bind(Date)
  const before = currentTime()
  vi.spyOn(Date, "now").mockImplementation(() => real() - 3_600_000)
  const elapsed = performance.now()
  const times = [currentTime(), currentTime(), currentTime()]
  expect(times).toEqual(times.toSorted((a, b) => a - b))
  expect(times[0]).toBeGreaterThanOrEqual(before)
  expect(times[0]).toBeLessThanOrEqual(before + elapsed)
})

test("follows the system clock forward", () => {
  const real = Date.now.bind(Date)
  const before = real()
  vi.spyOn(Date, "now").mockImplementation(() => real() + 3_600_000)
  expect(currentTime()).toBeGreaterThanOrEqual(before + 3_600_000)
})
