import { toLf } from "./text.ts"

/** Characters that models confuse, grouped by the ASCII form they stand for. */
const forms: readonly [plain: string, others: string][] = [
  ["'", "\u2018\u2019\u201a\u201b\u2032"],
  ['"', "\u201c\u201d\u201e\u201f\u2033"],
  ["-", "\u2010\u2011\u2012\u2013\u2014\u2015\u2212"],
  [" ", "\u00a0\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"],
  ["...", "\u2026"],
]

const plainForms = new Map(forms.flatMap(([plain, others]) => [...others].map((other) => [other, plain])))

/** Matches everything that {@link plainForm} changes: look-alikes, and line endings other than `\n`. */
export const lookAlikes = new RegExp(`[${[...plainForms.keys()].join("")}]|\\r\\n?`, "g")

/** Returns the ASCII form of a look-alike, and `\n` for any line ending. */
export function plainForm(found: string): string {
  return plainForms.get(found) ?? toLf(found)
}

/** Returns the text with all look-alikes in their ASCII form, and with `\n` as its only line ending. */
export function toPlain(text: string): string {
  return text.replace(lookAlikes, plainForm)
}

/**
 * Learns from pairs of old text and file text which forms the file uses. Returns a function that writes new text with
 * these forms. The function returns undefined if the form of a look-alike is unclear. For example, a look-alike that
 * occurs neither in the pairs nor in the file may be intended. If no pair differs, the function returns the text
 * unchanged.
 */
export function createFileForms(
  pairs: readonly { old: string; file: string }[],
  isUsed: (character: string) => boolean,
): (text: string) => string | undefined {
  const units = pairs.flatMap(({ old, file }) => {
    if (toPlain(old) === toPlain(file)) return align(old, file)
    // The texts may differ in spacing. Texts with different words do not reveal the file's forms.
    const [oldSigns, fileSigns] = [old.replace(/\s+/g, ""), file.replace(/\s+/g, "")]
    return toPlain(oldSigns) === toPlain(fileSigns) ? align(oldSigns, fileSigns) : []
  })
  const differ = units.some((unit) => unit.old !== unit.file)
  return differ ? (text) => inFileForms(text, units, isUsed) : (text) => text
}

/** A substring of the old text, as short as possible, and the corresponding substring of the file. */
interface Unit {
  old: string
  file: string
  use: EllipsisUse
}

/**
 * The use of an ellipsis. Three dots before a value spread it. After a word or between other characters, they mark an
 * omission. A model that confuses the forms in one use does not necessarily confuse the forms in other uses.
 */
type EllipsisUse = "spread" | "after a word" | "alone"

function ellipsisUse(text: string, start: number, end: number): EllipsisUse {
  if (/[\w$([{]/.test(text.charAt(end))) return "spread"
  return /\w/.test(text.charAt(start - 1)) ? "after a word" : "alone"
}

/** Returns the pairs of corresponding substrings in two texts that have the same plain form. */
function align(old: string, file: string): Unit[] {
  const units: Unit[] = []
  let [oldAt, fileAt] = [0, 0]
  while (oldAt < old.length || fileAt < file.length) {
    const unit = unitAt(old, oldAt, file, fileAt)
    // Substrings that overlap, such as "…" and ".…", are one unit.
    if (!unit) return [{ old, file, use: "alone" }]
    units.push({ ...unit, use: ellipsisUse(old, oldAt, oldAt + unit.old.length) })
    oldAt += unit.old.length
    fileAt += unit.file.length
  }
  return units
}

function unitAt(old: string, oldAt: number, file: string, fileAt: number): Omit<Unit, "use"> | undefined {
  const [oldPiece, filePiece] = [pieceAt(old, oldAt), pieceAt(file, fileAt)]
  const [oldPlain, filePlain] = [plainForm(oldPiece), plainForm(filePiece)]
  if (oldPlain === filePlain) return { old: oldPiece, file: filePiece }
  if (old.startsWith(filePlain, oldAt)) return { old: filePlain, file: filePiece }
  if (file.startsWith(oldPlain, fileAt)) return { old: oldPiece, file: oldPlain }
  return undefined
}

function pieceAt(text: string, offset: number): string {
  return text.startsWith("\r\n", offset) ? "\r\n" : text.charAt(offset)
}

function inFileForms(
  text: string,
  units: readonly Unit[],
  isUsed: (character: string) => boolean,
): string | undefined {
  const seen = new Map<string, Set<string>>()
  for (const unit of units) {
    const found = seen.get(unit.old) ?? new Set()
    seen.set(unit.old, found.add(unit.file))
  }
  const misused = new Set(units.filter((unit) => unit.old !== unit.file).map((unit) => kindOf(unit.old)))
  const uses = new Set(units.filter((unit) => unit.old === "…").map((unit) => unit.use))
  let isKnown = true
  const written = text.replace(lookAlikes, (character, at: number) => {
    const [form, ...more] = seen.get(character) ?? []
    const use = character === "…" ? ellipsisUse(text, at, at + 1) : undefined
    const isOther = use !== undefined && form !== character && !uses.has(use)
    if (form !== undefined && more.length === 0 && !isOther) return form
    // An ellipsis elsewhere in the file does not show how a spread is written, because a spread always has three dots.
    const isMisused = misused.has(kindOf(character))
    if (form === undefined && use !== "spread" && isUsed(character)) {
      // The model confuses characters of this kind, but the file has this one elsewhere.
      if (isMisused) isKnown = false
      return character
    }
    if (form !== undefined || !isMisused) isKnown = false
    return plainForm(character)
  })
  return isKnown ? written : undefined
}

/**
 * Returns the kind of a look-alike. Single and double quotes are one kind, because a model that confuses one confuses
 * both.
 */
function kindOf(look: string): string {
  const plain = plainForm(look)
  return plain === "'" ? '"' : plain
}
