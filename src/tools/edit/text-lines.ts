/** One line with its line ending, empty for a last line without one. `start` counts in UTF-16 units from 0. */
export interface Line {
  text: string
  eol: string
  start: number
}

/** The lines of a text. A line ending at the very end starts no further line; an empty text has none. */
export function splitLines(text: string): Line[] {
  const lines: Line[] = []
  let start = 0
  for (const { 0: eol, index } of text.matchAll(/\r\n|[\n\r]/g)) {
    lines.push({ text: text.slice(start, index), eol, start })
    start = index + eol.length
  }
  if (start < text.length) lines.push({ text: text.slice(start), eol: "", start })
  return lines
}

/** The white space that a line begins with. */
export function indentOf(line: string): string {
  return line.slice(0, line.length - line.trimStart().length)
}

/** True if a piece of the text is whole lines, the last with its line ending or without. */
export function coversLines(text: string, { start, end }: { start: number; end: number }): boolean {
  const isBreak = (at: number) => /[\n\r]/.test(text.charAt(at))
  return (start === 0 || isBreak(start - 1)) && (end === text.length || isBreak(end) || isBreak(end - 1))
}

/** The text with `\n` alone as line ending. */
export function toLf(text: string): string {
  return text.includes("\r") ? text.replace(/\r\n?/g, "\n") : text
}

/** Numbers from 1 of the lines on which these offsets lie, as the `read` tool counts them. Offsets ascend. */
export function lineNumbers(text: string, offsets: readonly number[]): number[] {
  const numbers: number[] = []
  let line = 1
  let next = text.indexOf("\n")
  for (const offset of offsets) {
    while (next !== -1 && next < offset) {
      line += 1
      next = text.indexOf("\n", next + 1)
    }
    numbers.push(line)
  }
  return numbers
}

/**
 * Says which line ending new text gets at a place, asked with ascending spans: the commonest among the lines that the
 * span touches, else the file's commonest; undefined where the file has none.
 */
export function eolFinder(text: string): (span: { start: number; end: number }) => string | undefined {
  if (!text.includes("\r")) return () => (text.includes("\n") ? "\n" : undefined)
  const counts = countEols(text)
  const overall = commonest(counts)
  if (counts.size <= 1) return () => overall
  const breaks = splitLines(text).filter((line) => line.eol !== "")
  let first = 0
  return ({ start, end }) => {
    // A line ending belongs to the first span that it ends or lies in.
    while (first < breaks.length && endOf(breaks[first]) <= start) first += 1
    const touched = new Map<string, number>()
    for (let index = first; index < breaks.length; index++) {
      const line = breaks[index]
      if (!line || (line.start >= end && touched.size > 0)) break
      touched.set(line.eol, (touched.get(line.eol) ?? 0) + 1)
    }
    return commonest(touched) ?? overall
  }
}

function endOf(line: Line | undefined): number {
  return line ? line.start + line.text.length + line.eol.length : 0
}

function countEols(text: string): Map<string, number> {
  const counts = new Map<string, number>()
  for (const [eol] of text.matchAll(/\r\n|[\n\r]/g)) counts.set(eol, (counts.get(eol) ?? 0) + 1)
  return counts
}

/** The first of the most frequent, so that a tie goes to the line ending that comes first. */
function commonest(counts: ReadonlyMap<string, number>): string | undefined {
  let best: string | undefined
  for (const [eol, count] of counts) if (best === undefined || count > (counts.get(best) ?? 0)) best = eol
  return best
}
