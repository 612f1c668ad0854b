import { toLf } from "./text-lines.ts"

/** Characters that models write for one another, by the plain ASCII form they stand for. */
const forms: readonly [plain: string, others: string][] = [
  ["'", "\u2018\u2019\u201a\u201b\u2032"],
  ['"', "\u201c\u201d\u201e\u201f\u2033"],
  ["-", "\u2010\u2011\u2012\u2013\u2014\u2015\u2212"],
  [" ", "\u00a0\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"],
  ["...", "\u2026"],
]

const plainForms = new Map(forms.flatMap(([plain, others]) => [...others].map((other) => [other, plain])))

/** Finds everything that {@link plainForm} changes: look-alikes, and line endings other than `\n`. */
export const lookAlikes = new RegExp(`[${[...plainForms.keys()].join("")}]|\\r\\n?`, "g")

/** `"` for a typographic quote, `...` for an ellipsis, `\n` for any line ending; all else as it is. */
export function plainForm(found: string): string {
  return plainForms.get(found) ?? toLf(found)
}

/** The text with every look-alike in its plain form. */
export function toPlain(text: string): string {
  return text.replace(lookAlikes, plainForm)
}

/**
 * Learns from pieces of the old text and what the file has for them which forms the file writes, and writes new text
 * so. A look-alike that the file has nowhere becomes plain where others of its kind were the model's alone: undefined
 * where none of its kind is known, for it may be what the new text is about. Text stays as it is where no pair differs.
 */
export function createFileForms(
  pairs: readonly { old: string; file: string }[],
  isUsed: (character: string) => boolean,
): (text: string) => string | undefined {
  const units = pairs.flatMap(({ old, file }) => {
    if (toPlain(old) === toPlain(file)) return align(old, file)
    // Spacing may differ besides, and says nothing of the forms; nor do texts of other words.
    const [oldSigns, fileSigns] = [old.replace(/\s+/g, ""), file.replace(/\s+/g, "")]
    return toPlain(oldSigns) === toPlain(fileSigns) ? align(oldSigns, fileSigns) : []
  })
  const differ = units.some((unit) => unit.old !== unit.file)
  return differ ? (text) => inFileForms(text, units, isUsed) : (text) => text
}

/** A shortest piece of the old text with the piece of the file that it stands for, and where it stands. */
interface Unit {
  old: string
  file: string
  use: EllipsisUse
}

/**
 * What an ellipsis is there for: three dots before a value spread it, those after a word or between signs leave something
 * out. Who writes one kind otherwise need not write the others so.
 */
type EllipsisUse = "spread" | "after a word" | "alone"

function ellipsisUse(text: string, start: number, end: number): EllipsisUse {
  if (/[\w$([{]/.test(text.charAt(end))) return "spread"
  return /\w/.test(text.charAt(start - 1)) ? "after a word" : "alone"
}

/** Walks along two texts of one plain form. */
function align(old: string, file: string): Unit[] {
  const units: Unit[] = []
  let [oldAt, fileAt] = [0, 0]
  while (oldAt < old.length || fileAt < file.length) {
    const unit = unitAt(old, oldAt, file, fileAt)
    // "…" beside ".…": pieces that overlap. Too odd to take apart: the texts are one unit.
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
    // What the file's words have says nothing of a spread, which is written with three dots alone.
    if (form === undefined && use !== "spread" && isUsed(character)) return character
    if (form !== undefined || !misused.has(kindOf(character))) isKnown = false
    return plainForm(character)
  })
  return isKnown ? written : undefined
}

/** Who writes one kind of quote otherwise writes both so. */
function kindOf(look: string): string {
  const plain = plainForm(look)
  return plain === "'" ? '"' : plain
}
