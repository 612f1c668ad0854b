import { applyEdit } from "../../src/tools/edit/apply-edit.ts"
import { findEdit } from "../../src/tools/edit/find-edit.ts"
import { bendEdit, bendKinds } from "./bends.ts"
import type { BentEdit } from "./draft.ts"
import { createRandom, type Random, type RealEdit } from "./edits.ts"

/**
 * The result of an edit. `right` means the expected text, or the refusal of an edit that must be refused. `wrong` means
 * any other text.
 */
export type Verdict = "right" | "refused" | "wrong"

/** Number of edits by verdict. */
export type Tally = Record<Verdict, number>

/** Applies edits in the same way as the tool, and returns the verdicts by kind. */
export function measureEdits(edits: readonly BentEdit[]): Map<string, Tally> {
  const tallies = new Map<string, Tally>()
  for (const edit of edits) {
    const tally = tallies.get(edit.kind) ?? { right: 0, refused: 0, wrong: 0 }
    tally[judge(edit)] += 1
    tallies.set(edit.kind, tally)
  }
  return tallies
}

/**
 * Applies one edit in the same way as the tool, but without a file. `without` contains the names of the strategies and
 * decorations to turn off.
 */
export function judge(
  { file, oldString, newString, expected }: BentEdit,
  without?: ReadonlySet<string>,
): Verdict {
  const match = findEdit(file, { oldString, newString, replaceAll: false }, { without })
  const merged = match.kind === "found" ? applyEdit({ text: file, match }) : undefined
  const result = merged && "text" in merged ? merged.text : undefined
  if (result === undefined || result === file) return expected === undefined ? "right" : "refused"
  return result === expected ? "right" : "wrong"
}

/** Returns the sum of several tallies. */
export function total(tallies: Iterable<Tally>): Tally {
  const sum = { right: 0, refused: 0, wrong: 0 }
  for (const tally of tallies) {
    sum.right += tally.right
    sum.refused += tally.refused
    sum.wrong += tally.wrong
  }
  return sum
}

/** Maximum number of attempts per required edit. */
const triesEach = 40

/** Bends random edits in every way. `each` is the maximum number of edits of each kind. */
export function bendEach(options: { edits: readonly RealEdit[]; each: number; seed: number }): BentEdit[] {
  return bendKinds.flatMap((kind, index) => {
    // Each kind has its own seed, so that a new kind does not change the others.
    const random = createRandom(options.seed * 7919 + index)
    const bents: BentEdit[] = []
    for (let tries = 0; bents.length < options.each && tries < options.each * triesEach; tries++) {
      const bent = bendEdit(random.pick(options.edits), kind, random)
      if (bent) bents.push(bent)
    }
    return bents
  })
}

/** Maximum number of attempts per required edit. */
const mixedTriesEach = 200

/**
 * Bends `count` edits in random ways, except those that must be refused. Does not reuse an edit before all are used.
 */
export function bendMixed(options: {
  edits: readonly RealEdit[]
  count: number
  random: Random
}): BentEdit[] {
  const { edits, count, random } = options
  const kinds = bendKinds.filter((kind) => !kind.startsWith("refuse:"))
  const bents: BentEdit[] = []
  let left: RealEdit[] = []
  for (let tries = 0; bents.length < count && tries < count * mixedTriesEach; tries++) {
    if (left.length === 0) left = [...edits]
    const at = random.below(left.length)
    const edit = left[at]
    const bent = edit && bendEdit(edit, random.pick(kinds), random)
    if (!bent) continue
    left.splice(at, 1)
    bents.push(bent)
  }
  return bents.sort((a, b) => kinds.indexOf(a.kind) - kinds.indexOf(b.kind))
}
