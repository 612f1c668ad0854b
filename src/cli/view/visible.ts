/** Controls, bidi marks, zero-width and tag characters: what a terminal would act on or hide. Tab and newline stay. */
const hidden = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\u{E0000}-\u{E007F}]/gu

/** The text with every such character written out, as in `<U+202E>`. Nothing of it can move the cursor. */
export function visible(text: string): string {
  return text.replaceAll(hidden, (character) => {
    if (character === "\n" || character === "\t") return character
    return `<U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}>`
  })
}

/** The same on one line, cut to the width in columns with a mark. */
export function oneLine(text: string, width: number): string {
  const line = visible(text).replaceAll(/\s+/g, " ").trim()
  return columns(line) > width ? `${take(line, width - 1)}…` : line
}

/** The same on at most `rows` lines, broken between words where that is possible; the last one is cut with a mark. */
export function wrapped(text: string, width: number, rows = Number.POSITIVE_INFINITY): string[] {
  const lines: string[] = []
  let rest = visible(text).replaceAll(/\s+/g, " ").trim()
  while (columns(rest) > width && lines.length + 1 < rows) {
    const head = take(rest, width)
    const space = rest[head.length] === " " ? head.length : head.lastIndexOf(" ")
    const line = space > width / 2 ? rest.slice(0, space) : head
    lines.push(line)
    rest = rest.slice(line.length).trimStart()
  }
  return [...lines, oneLine(rest, width)]
}

/** As much of the beginning as fits into the columns. */
function take(text: string, width: number): string {
  let room = width
  let length = 0
  for (const character of text) {
    room -= columns(character)
    if (room < 0) break
    length += character.length
  }
  return text.slice(0, length)
}

/** East Asian scripts and emoji take two columns of a terminal. */
const wide =
  /[\u1100-\u115F\u2E80-\uA4CF\uAC00-\uD7A3\uF900-\uFAFF\uFE30-\uFE6F\uFF00-\uFF60\uFFE0-\uFFE6\u{20000}-\u{3FFFD}]|\p{Emoji_Presentation}/u
const combining = /^\p{M}$/u

/** Columns that the text takes in a terminal. */
export function columns(text: string): number {
  let count = 0
  for (const character of text) count += combining.test(character) ? 0 : wide.test(character) ? 2 : 1
  return count
}
