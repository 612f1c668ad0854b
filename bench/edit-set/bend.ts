import { bends } from "./bends.ts"
import type { Random } from "./random.ts"
import { linesOf, type RealEdit } from "./real-edit.ts"

/** An edit as a model asks for it, and the only text that the file may then have; undefined: it must be refused. */
export interface BentEdit {
  kind: string
  path: string
  file: string
  oldString: string
  newString: string
  expected: string | undefined
}

/** What a kind of bend is given, and what it may replace. All texts end their lines by `\n`. */
export interface Draft {
  edit: RealEdit
  random: Random
  file: string
  expected: string
  oldString: string
  newString: string
}

/** Undefined where the edit has nothing that could be bent in this way. */
export type Bend = (draft: Draft) => Partial<Omit<BentEdit, "kind" | "path">> | undefined

/** The names of all kinds. */
export const bendKinds: readonly string[] = Object.keys(bends)

/** Bends a real edit in the way named. Undefined where it cannot be, or where its text stands in the file twice. */
export function bendEdit(edit: RealEdit, kind: string, random: Random): BentEdit | undefined {
  const oldString = linesOf(edit, "old").join("\n")
  const newString = linesOf(edit, "new").join("\n")
  const end = edit.after === "" ? "" : "\n"
  const file = edit.before + oldString + end + edit.after
  const expected = edit.before + newString + end + edit.after
  if (oldString.trim() === "" || file.split(oldString).length !== 2) return undefined
  const draft = { edit, random, file, expected, oldString, newString }
  const bent = bends[kind]?.(draft)
  if (!bent) return undefined
  const whole = { kind, path: edit.path, file, expected, oldString, newString, ...bent }
  if (whole.oldString === whole.newString || whole.oldString.trim() === "") return undefined
  if (kind !== "exact" && !kind.includes("refuse") && isExact(whole, kind)) return undefined
  return whole
}

/** What the file has exactly is not bent. Where line endings alone are bent, new lines still need the file's. */
function isExact({ file, oldString }: BentEdit, kind: string): boolean {
  if (kind === "LF for CRLF" || kind === "CRLF for LF") return false
  // Without one of its lines a text may be another that the file has too.
  const plain = kind === "a kept line left out" ? /\s+/g : /\r/g
  return file.replace(plain, "").includes(oldString.replace(plain, ""))
}
