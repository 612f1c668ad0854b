import { expect, test } from "vitest"
import { canMount, fullDisk, readOnly } from "./disk.ts"

/** From too small for the tables to enough for all but the end of a subagent, in KB. */
test.skipIf(!canMount()).each([16, 160, 512, 720])(
  "a run whose disk of %i KB is full ends with that, and is gone on with when there is room again",
  async (size) => {
    expect(await fullDisk(size)).toMatchObject({ missed: false, wrong: [] })
  },
)

test.skipIf(!canMount())(
  "a read-only data directory is named with the way out, and nothing is begun",
  async () => {
    expect((await readOnly()).wrong).toEqual([])
  },
)
