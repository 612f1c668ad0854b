/** True if `TACKLE_TEST_COMPLETE=1` is set, as in CI. Property tests and long series of cases are then complete. */
export const isComplete = process.env.TACKLE_TEST_COMPLETE === "1"

/**
 * Returns the number of runs of a property test: all of them in CI, otherwise a tenth. A test with at least 50 runs keeps
 * at least 50.
 */
export function runs(all: number): number {
  return isComplete ? all : Math.min(all, Math.max(50, Math.ceil(all / 10)))
}
