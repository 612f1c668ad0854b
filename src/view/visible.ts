/** Matches control, bidirectional, zero-width and tag characters, and line and paragraph separators. */
const hidden = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\u{E0000}-\u{E007F}]/gu

/**
 * Replaces each hidden character except tab and newline with text such as `<U+202E>`, so that it cannot move the
 * cursor.
 */
export function visible(text: string): string {
  return text.replaceAll(hidden, (character) => {
    if (character === "\n" || character === "\t") return character
    return `<U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}>`
  })
}

/** Like {@link visible}, but keeps the sequences that set colors and styles. */
export function visibleExceptStyles(text: string): string {
  return text
    .split(styles)
    .map((part, index) => (index % 2 === 0 ? visible(part) : part))
    .join("")
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: terminals expect this character
const styles = /(\x1b\[[\d;]*m)/

/**
 * Makes hidden characters visible and formats the text on one line. Cuts the text to `width` columns, between words
 * if possible, and marks the cut.
 */
export function oneLine(text: string, width: number): string {
  const line = visible(text).replaceAll(/\s+/g, " ").trim()
  return columns(line) > width ? `${takeWords(line, width - 1)}…` : line
}

/**
 * Makes hidden characters visible, replaces line breaks with spaces, and wraps the text to at most `rows` lines, between
 * words if possible. If the text is longer, cuts the last line and marks the cut.
 */
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
 * Wraps each line between words and indents continuation lines. A word longer than a line, such as a path to copy,
 * stays whole.
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

/** Returns the words that fit. Splits a word if half of the line would otherwise stay empty. */
function takeWords(text: string, width: number): string {
  const head = take(text, width)
  const space = text[head.length] === " " ? head.length : head.lastIndexOf(" ")
  return space > width / 2 ? text.slice(0, space) : head
}

/** Returns the longest beginning of the text that fits. */
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

/** Matches East Asian characters and emoji, which take two columns. */
const wide =
  /[\u1100-\u115F\u2E80-\uA4CF\uAC00-\uD7A3\uF900-\uFAFF\uFE30-\uFE6F\uFF00-\uFF60\uFFE0-\uFFE6\u{20000}-\u{3FFFD}]|\p{Emoji_Presentation}/u
const combining = /^\p{M}$/u

/** Returns the number of columns that the text takes in a terminal. */
export function columns(text: string): number {
  let count = 0
  for (const character of text) count += combining.test(character) ? 0 : wide.test(character) ? 2 : 1
  return count
}

/** Cuts a line to `width` columns and marks the cut. Does not collapse spaces. */
export function clipped(line: string, width: number): string {
  return columns(line) > width ? `${take(line, width - 1)}…` : line
}
