import { type BentEdit, bendEdit, bendKinds } from "./bend.ts"
import { judge } from "./judge.ts"
import type { Tally } from "./measure.ts"
import type { Random } from "./random.ts"
import type { RealEdit } from "./real-edit.ts"

/** The ways in which a model bends what can be done: what must be refused is counted apart. */
const kinds = bendKinds.filter((kind) => !kind.startsWith("refuse:"))
const triesEach = 200

/** So many edits, each bent in a way picked by chance, no edit twice before all had their turn; by kind. */
export function measureMixed(options: {
  edits: readonly RealEdit[]
  count: number
  random: Random
}): Map<string, Tally> {
  const tallies = new Map<string, Tally>()
  for (const bent of bendMixed(options)) {
    const tally = tallies.get(bent.kind) ?? { right: 0, refused: 0, wrong: 0 }
    tally[judge(bent).verdict] += 1
    tallies.set(bent.kind, tally)
  }
  return new Map([...tallies].sort(([a], [b]) => kinds.indexOf(a) - kinds.indexOf(b)))
}

function bendMixed({
  edits,
  count,
  random,
}: {
  edits: readonly RealEdit[]
  count: number
  random: Random
}): BentEdit[] {
  const bents: BentEdit[] = []
  let left: RealEdit[] = []
  for (let tries = 0; bents.length < count && tries < count * triesEach; tries++) {
    if (left.length === 0) left = [...edits]
    const at = random.below(left.length)
    const edit = left[at]
    const bent = edit && bendEdit(edit, random.pick(kinds), random)
    if (!bent) continue
    left.splice(at, 1)
    bents.push(bent)
  }
  return bents
}
