/** Controls, bidi marks, zero-width and tag characters: what a terminal would act on or hide. Tab and newline stay. */
const hidden = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\u{E0000}-\u{E007F}]/gu

/** The text with every such character written out, as in `<U+202E>`. Nothing of it can move the cursor. */
export function visible(text: string): string {
  return text.replaceAll(hidden, (character) => {
    if (character === "\n" || character === "\t") return character
    return `<U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}>`
  })
}

/** The same on one line, cut to the width with a mark. Width in columns, counting wide characters as one. */
export function oneLine(text: string, width: number): string {
  const line = visible(text).replaceAll(/\s+/g, " ").trim()
  const characters = [...line]
  return characters.length > width ? `${characters.slice(0, Math.max(0, width - 1)).join("")}…` : line
}
