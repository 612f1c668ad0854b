/** The indentation of one line as the model wrote it, and as the file has it. */
export interface IndentPair {
  from: string
  to: string
}

/**
 * Learns from lines that are known how the file indents, and gives the file's indentation for one the model wrote.
 * Undefined where the known lines do not say: a guess could change what a program means. `scale`: how much
 * wider the file's levels are than the model's, where that is known.
 */
export function createReindent(
  pairs: readonly IndentPair[],
  { scale }: { scale?: number | undefined } = {},
): (indent: string) => string | undefined {
  const known = new Map<string, string>()
  const unclear = new Set<string>()
  for (const { from, to } of pairs) {
    if ((known.get(from) ?? to) !== to) unclear.add(from)
    known.set(from, to)
  }
  for (const from of unclear) known.delete(from)
  if (unclear.size === 0 && [...known].every(([from, to]) => from === to)) return (indent) => indent
  const levels = [...known].map(([from, to]) => ({ from, to })).sort((a, b) => a.from.length - b.from.length)
  const step = stepOf(levels)
  if (step && !isLikely(step, levels, scale)) return (indent) => known.get(indent)
  return (indent) => {
    if (unclear.has(indent)) return undefined
    return known.get(indent) ?? (step && derive(indent, levels, step))
  }
}

/**
 * True if levels of one kind of white space are shifted, or scaled as the widths of both texts' levels say or from the
 * margin on. One level alone fits a shift as well as a scale, and both would be guesses where the widths differ.
 */
function isLikely(step: Step, levels: readonly IndentPair[], scale: number | undefined): boolean {
  if (step.from !== step.to) return true
  const [level, ...more] = levels
  if (!level) return true
  if (more.length === 0) return scale === 1 || level.from === "" || level.to === ""
  return step.ratio === 1 || step.ratio === scale || level.to.length === level.from.length * step.ratio
}

/** How further indentation is translated: so many of one character for so many of the other. */
interface Step {
  from: string
  to: string
  ratio: number
}

/** The one step that explains every difference between the known levels; undefined if they contradict each other. */
function stepOf(levels: readonly IndentPair[]): Step | undefined {
  const steps = levels.slice(1).map((level, index) => stepBetween(levels[index], level))
  const [first, ...more] = steps.length > 0 ? steps : [stepOfOne(levels[0])]
  if (!first) return undefined
  const same = (step: Step | undefined) =>
    step?.from === first.from && step.to === first.to && step.ratio === first.ratio
  return more.every(same) ? first : undefined
}

function stepBetween(shallow: IndentPair | undefined, deep: IndentPair): Step | undefined {
  if (!shallow || !deep.from.startsWith(shallow.from) || !deep.to.startsWith(shallow.to)) return undefined
  return toStep(deep.from.slice(shallow.from.length), deep.to.slice(shallow.to.length))
}

/** One level alone: tabs for spaces are a matter of scale, more or fewer of the same are a shift of the whole. */
function stepOfOne(level: IndentPair | undefined): Step | undefined {
  if (!level) return undefined
  const [from, to] = [characterOf(level.from), characterOf(level.to)]
  if (from && to && from !== to) return toStep(level.from, level.to)
  const character = from ?? to
  return character === undefined ? undefined : { from: character, to: character, ratio: 1 }
}

function toStep(from: string, to: string): Step | undefined {
  const [own, other] = [characterOf(from), characterOf(to)]
  return own && other ? { from: own, to: other, ratio: to.length / from.length } : undefined
}

/** The character that an indentation consists of; undefined for an empty or a mixed one. */
function characterOf(indent: string): string | undefined {
  const [first] = indent
  return first !== undefined && indent === first.repeat(indent.length) ? first : undefined
}

function derive(indent: string, levels: readonly IndentPair[], step: Step): string | undefined {
  const shallower = levels.findLast((level) => indent.startsWith(level.from))
  if (shallower) {
    const more = translate(indent.slice(shallower.from.length), step)
    return more === undefined ? undefined : shallower.to + more
  }
  const deeper = levels.find((level) => level.from.startsWith(indent))
  const less = deeper && translate(deeper.from.slice(indent.length), step)
  if (less === undefined || !deeper?.to.endsWith(less)) return undefined
  return deeper.to.slice(0, deeper.to.length - less.length)
}

function translate(indent: string, step: Step): string | undefined {
  const count = indent.length * step.ratio
  return characterOf(indent) === step.from && Number.isInteger(count) ? step.to.repeat(count) : undefined
}
