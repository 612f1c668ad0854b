import { createGapPlaces } from "./gap-place.ts"
import { findGappedBlocks, isMark } from "./left-out-lines.ts"
import type { Line } from "./text-lines.ts"

/** An edit whose lines are to be completed. `file` begins and ends where `old` does. */
export interface GappedEdit {
  file: readonly Line[]
  old: readonly Line[]
  fresh: readonly Line[]
}

/**
 * Puts the lines that were left out where they belong in both texts, in place of their marks. Undefined where the new
 * text does not show where that is, because lines beside them change or equal others, or is what stands there already.
 */
export function fillGaps(edit: GappedEdit): { old: Line[]; fresh: Line[] } | undefined {
  const { file, fresh } = edit
  if (fresh.length === file.length && fresh.every((line, at) => line.text.trim() === file[at]?.text.trim()))
    return undefined
  const [filled, other] = [fillAligned(edit, false), fillAligned(edit, true)]
  const isSame = filled?.fresh.every((line, at) => line.text === other?.fresh[at]?.text)
  return isSame && filled?.fresh.length === other?.fresh.length ? filled : undefined
}

/** `fromEnd`: which of equal lines the new text is taken to keep. */
function fillAligned(
  { file, old, fresh }: GappedEdit,
  fromEnd: boolean,
): { old: Line[]; fresh: Line[] } | undefined {
  const [block, ...more] = findGappedBlocks(file, old).filter(
    ({ start, quoted }) => start === 0 && quoted.length === file.length,
  )
  if (!block || more.length > 0) return undefined
  const places = createGapPlaces({ file, old, fresh, quoted: block.quoted }, fromEnd)
  const filled = new Map<number, Line[]>()
  const marks = new Set<number>()
  const completed: Line[] = []
  let before = -1
  for (const [at, index] of block.quoted.entries()) {
    const line = file[at]
    if (!line) return undefined
    const own = index === undefined ? undefined : old[index]
    completed.push(own ?? line)
    if (index !== undefined) {
      before = index
      continue
    }
    const place = isMark(old[before + 1]?.text ?? "") ? places.mark(before + 1) : places.between(before)
    if (place === undefined) return undefined
    if (isMark(old[before + 1]?.text ?? "")) marks.add(place)
    filled.set(place, [...(filled.get(place) ?? []), line])
  }
  // A mark that the new text has and the old has not would be written into the file.
  if (fresh.some((line, index) => isMark(line.text) && !marks.has(index))) return undefined
  const whole = fresh.flatMap((line, index) => [
    ...(filled.get(index) ?? []),
    ...(marks.has(index) ? [] : [line]),
  ])
  const all = [...whole, ...(filled.get(fresh.length) ?? [])]
  const end = fresh.at(-1)?.eol ?? ""
  return {
    old: completed,
    fresh: all.map((line, index) => (index === all.length - 1 ? { ...line, eol: end } : line)),
  }
}
