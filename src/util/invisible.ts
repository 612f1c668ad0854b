/**
 * Characters that are invisible or change how adjacent characters are displayed: control characters, line and paragraph
 * separators, direction marks, tags, zero-width characters, spaces other than U+0020, and characters that are
 * unassigned or for private use. Line feeds are excluded.
 */
const unseen = () =>
  /(?!\n)[\p{Cc}\p{Cf}\p{Co}\p{Cn}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]|(?! )\p{Zs}/u
/**
 * Matches every character except line feeds and printable ASCII. Tested before `unseen`, because compiling `unseen`
 * takes almost 1 ms. `unseen` is a function, so that no start compiles it without need.
 */
const beyondPlain = /[^\n\x20-\x7e]/

/**
 * Returns true if the text contains invisible characters, including tabs. The user cannot see what a command with such
 * characters runs.
 */
export function invisibleCharacters(text: string): boolean {
  return beyondPlain.test(text) && unseen().test(text)
}

/**
 * Replaces each invisible character with its code point, such as `<U+202E>`. Set `keepTabs` to keep tabs, for example
 * in a diff.
 */
export function showInvisible(text: string, { keepTabs = false } = {}): string {
  if (!beyondPlain.test(text)) return text
  return text.replaceAll(new RegExp(unseen(), "gu"), (character) => {
    if (keepTabs && character === "\t") return character
    return `<U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}>`
  })
}
