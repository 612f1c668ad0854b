import { expect, test } from "vitest"
import { isComplete } from "../runs.ts"
import { canMount, fullDisk, readOnly, readStored } from "./disk.ts"

/** Sizes in KB, from too small for the tables to almost enough for the whole run. */
test.skipIf(!canMount()).each(isComplete ? [16, 160, 512, 720] : [16, 512])(
  "ends a run on a full disk of %i KB, and continues it when there is space again",
  async (size) => {
    expect(await fullDisk(size)).toMatchObject({ missed: false, wrong: [] })
  },
)

test.skipIf(!canMount())(
  "reports a read-only data directory with a solution, and starts nothing",
  async () => {
    expect((await readOnly()).wrong).toEqual([])
  },
)

test.skipIf(!canMount())("lists, shows and counts sessions in a read-only data directory", async () => {
  expect(await readStored()).toEqual([])
})
