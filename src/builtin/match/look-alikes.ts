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

/**
 * What stands in the file after an edit whose old text matched `file` but for look-alikes. Where old and new text
 * agree the file's own characters stay. In what is new, a look-alike becomes what the file has for it, one that the
 * file has nowhere becomes plain, and `\n`, the one line ending of old and new text, becomes `eol`.
 */
export function replaceLookAlikes(edit: {
  file: string
  oldText: string
  newText: string
  eol: string
  /** True if the character occurs in the file at all. */
  isUsed: (character: string) => boolean
}): string {
  const { file, oldText, newText, eol, isUsed } = edit
  const units = align(oldText, file)
  const head = sharedUnits(units, commonPrefix(oldText, newText))
  const rest = units.slice(head.length)
  const left = Math.min(oldText.length, newText.length) - sum(head)
  const tail = sharedUnits(rest.toReversed(), Math.min(left, commonSuffix(oldText, newText))).toReversed()
  const middle = newText.slice(sum(head), newText.length - sum(tail))
  return fileText(head) + inFileForms(middle, units, isUsed).replaceAll("\n", eol) + fileText(tail)
}

/** A shortest piece of the old text with the piece of the file that it stands for. */
interface Unit {
  old: string
  file: string
}

/** Walks along two texts of one plain form. */
function align(old: string, file: string): Unit[] {
  const units: Unit[] = []
  let [oldAt, fileAt] = [0, 0]
  while (oldAt < old.length || fileAt < file.length) {
    const unit = unitAt(old, oldAt, file, fileAt)
    // "…" beside ".…": pieces that overlap. Too odd to take apart: the texts are one unit.
    if (!unit) return [{ old, file }]
    units.push(unit)
    oldAt += unit.old.length
    fileAt += unit.file.length
  }
  return units
}

function unitAt(old: string, oldAt: number, file: string, fileAt: number): Unit | undefined {
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

/** The units that lie wholly in the first `length` characters of the old text. */
function sharedUnits(units: readonly Unit[], length: number): Unit[] {
  let used = 0
  const end = units.findIndex((unit) => {
    used += unit.old.length
    return used > length
  })
  return units.slice(0, end === -1 ? units.length : end)
}

function inFileForms(text: string, units: readonly Unit[], isUsed: (character: string) => boolean): string {
  const seen = new Map<string, Set<string>>()
  for (const unit of units) {
    const found = seen.get(unit.old) ?? new Set()
    seen.set(unit.old, found.add(unit.file))
  }
  return text.replace(lookAlikes, (character) => {
    const [form, ...more] = seen.get(character) ?? []
    if (form !== undefined && more.length === 0) return form
    return isUsed(character) ? character : plainForm(character)
  })
}

function sum(units: readonly Unit[]): number {
  return units.reduce((total, unit) => total + unit.old.length, 0)
}

function fileText(units: readonly Unit[]): string {
  return units.map((unit) => unit.file).join("")
}

function commonPrefix(a: string, b: string): number {
  let length = 0
  while (length < a.length && length < b.length && a[length] === b[length]) length += 1
  return length
}

function commonSuffix(a: string, b: string): number {
  let length = 0
  while (length < a.length && length < b.length && a.at(-1 - length) === b.at(-1 - length)) length += 1
  return length
}
