import { bendEdit, bendKinds } from "./bend.ts"
import { judge, type Verdict } from "./judge.ts"
import { createRandom } from "./random.ts"
import type { RealEdit } from "./real-edit.ts"

/** How many edits of a kind came out how. */
export type Tally = Record<Verdict, number>

const triesEach = 40

/** Bends edits picked by chance in every way and does them. `each`: how many of a kind, where so many can be bent so. */
export function measureEdits(options: {
  edits: readonly RealEdit[]
  each: number
  seed: number
}): Map<string, Tally> {
  const tallies = new Map<string, Tally>()
  for (const [index, kind] of bendKinds.entries()) {
    // A number of its own for every kind: a new kind leaves the others as they were.
    const random = createRandom(options.seed * 7919 + index)
    const tally = { right: 0, refused: 0, wrong: 0 }
    let done = 0
    for (let tries = 0; done < options.each && tries < options.each * triesEach; tries++) {
      const bent = bendEdit(random.pick(options.edits), kind, random)
      if (!bent) continue
      tally[judge(bent).verdict] += 1
      done += 1
    }
    tallies.set(kind, tally)
  }
  return tallies
}

/** All kinds together. */
export function total(tallies: Iterable<Tally>): Tally {
  const sum = { right: 0, refused: 0, wrong: 0 }
  for (const tally of tallies) {
    sum.right += tally.right
    sum.refused += tally.refused
    sum.wrong += tally.wrong
  }
  return sum
}
