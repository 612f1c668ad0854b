/**
 * Characters that do not show as themselves, or that change how their neighbours show: controls, direction marks, tags,
 * characters of no width, blanks of every kind but the space, and what has no meaning at all. Line ends are left out.
 */
const unseen =
  /(?!\n)[\p{Cc}\p{Cf}\p{Co}\p{Cn}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]|(?! )\p{Zs}/u
/** Nearly every text is of these alone; to compile the classes of the other takes most of a millisecond. */
const beyondPlain = /[^\n\x20-\x7e]/
const everyUnseen = new RegExp(unseen, "gu")

/** True if the text holds such characters, tabs included: what a person reads is then not what will run. */
export function invisibleCharacters(text: string): boolean {
  return beyondPlain.test(text) && unseen.test(text)
}

/** The text with each of them written out, as in `<U+202E>`. `keepTabs` is for texts where tabs are usual, such as diffs. */
export function showInvisible(text: string, { keepTabs = false } = {}): string {
  return text.replaceAll(everyUnseen, (character) => {
    if (keepTabs && character === "\t") return character
    return `<U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}>`
  })
}
