/** True if `TACKLE_TEST_COMPLETE=1` is set, as in CI. Property tests and long series of cases are then complete. */
export const isComplete = process.env.TACKLE_TEST_COMPLETE === "1"

/** Returns the number of runs of a property test: all of them in CI, otherwise a tenth, but at least 50 if it has as many. */
export function runs(all: number): number {
  return isComplete ? all : Math.min(all, Math.max(50, Math.ceil(all / 10)))
}
