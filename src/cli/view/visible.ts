/** Controls, bidi marks, zero-width and tag characters: what a terminal would act on or hide. Tab and newline stay. */
const hidden = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\u{E0000}-\u{E007F}]/gu

/** The text with every such character written out, as in `<U+202E>`. Nothing of it can move the cursor. */
export function visible(text: string): string {
  return text.replaceAll(hidden, (character) => {
    if (character === "\n" || character === "\t") return character
    return `<U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}>`
  })
}

/** The same on one line, cut to the width in columns with a mark, between words where that is possible. */
export function oneLine(text: string, width: number): string {
  const line = visible(text).replaceAll(/\s+/g, " ").trim()
  return columns(line) > width ? `${takeWords(line, width - 1)}…` : line
}

/** The same on at most `rows` lines, broken between words where that is possible; the last one is cut with a mark. */
export function wrapped(text: string, width: number, rows = Number.POSITIVE_INFINITY): string[] {
  const lines: string[] = []
  let rest = visible(text).replaceAll(/\s+/g, " ").trim()
  while (columns(rest) > width && lines.length + 1 < rows) {
    const line = takeWords(rest, width)
    lines.push(line)
    rest = rest.slice(line.length).trimStart()
  }
  return [...lines, oneLine(rest, width)]
}

/**
 * The lines of a text, broken between words where they are wider than a terminal, with what follows further in. A word
 * that is wider stays whole, such as a path that is to be copied.
 */
export function folded(text: string, width = 80): string {
  return text
    .split("\n")
    .map((line) => foldLine(line, width))
    .join("\n")
}

function foldLine(line: string, width: number): string {
  const [, indent = ""] = /^( *)/.exec(line) ?? []
  const lines = [indent]
  for (const word of line.slice(indent.length).split(" ")) {
    const last = lines.at(-1) ?? ""
    const begun = last.trim() !== ""
    if (begun && columns(last) + 1 + columns(word) > width) lines.push(`${indent}  ${word}`)
    else lines[lines.length - 1] = begun ? `${last} ${word}` : `${last}${word}`
  }
  return lines.join("\n")
}

/** The words that fit into the columns, or part of one that would leave half of them empty. */
function takeWords(text: string, width: number): string {
  const head = take(text, width)
  const space = text[head.length] === " " ? head.length : head.lastIndexOf(" ")
  return space > width / 2 ? text.slice(0, space) : head
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
