/** A line with text, by what its indentation says. */
export interface Nested {
  /** Without the white space around it. */
  text: string
  /** The length of its indentation. */
  depth: number
  /** True: the lines after it lie in it, one level deeper. */
  opens: boolean
}

/**
 * True if lines can follow one another: deeper after one that opens a bracket, and there alone; and back only before one
 * that closes it. False where lines lie in another without a bracket: what ends that cannot be seen.
 */
export function nestsWell(lines: readonly Nested[]): boolean {
  return lines.slice(1).every((line, index) => {
    const above = lines[index]
    if (!above) return true
    if (above.opens && !/[([{]$/.test(above.text)) return false
    const closes = /^[)\]}]/.test(line.text)
    if (above.opens) return closes ? line.depth === above.depth : line.depth > above.depth
    return closes ? line.depth < above.depth : line.depth === above.depth
  })
}
