import { isOpenHead, type LineStructure, lineStructure } from "./line-structure.ts"
import { indentOf, type Line } from "./text-lines.ts"

/** True if neither text has any indentation, and the lines of the file are on several levels: nothing can be shifted. */
export function hasLostIndentation(edit: {
  file: readonly Line[]
  old: readonly Line[]
  fresh: readonly Line[]
}): boolean {
  const isFlat = [...edit.old, ...edit.fresh].every(({ text }) => text.trim() === "" || indentOf(text) === "")
  const levels = edit.file.filter(({ text }) => text.trim() !== "").map(({ text }) => indentOf(text))
  return isFlat && new Set(levels).size > 1
}

/** A line of the new text. `indent`: the file's, for one that the file has; absent for one that is added. */
export interface UnindentedLine {
  text: string
  indent?: string | undefined
}

/**
 * Gives every line its indentation: those that are added by the brackets that the lines around them open and close. What
 * that comes to has to agree with the next line that the file has, and the first and the last line have to be such.
 * Undefined where the lines do not say it: in a language whose blocks have no brackets only lines between two of one
 * level are clear.
 */
export function restoreIndentation(lines: readonly UnindentedLine[], unit: string): string[] | undefined {
  const indents: string[] = []
  let nest: Nest | undefined
  /** The indentation of a head without brackets, until a line is not deeper: it may have one line of its own, or more. */
  let head: string | undefined
  /** True while lines were added since the last that the file has. */
  let isPending = false
  for (const { text, indent } of lines) {
    if (text === "") {
      indents.push("")
      continue
    }
    const expected = nest?.expected(text)
    if (indent === undefined ? expected === undefined : isPending && expected !== indent) return undefined
    const own = indent ?? expected ?? ""
    isPending = indent === undefined
    // What a line that cannot be read does to those after it is unknown: they are taken anew.
    if (expected !== own) nest = undefined
    const isOfHead: boolean = head !== undefined && own.length > head.length
    if (!isOfHead) head = isOpenHead(text) ? own : undefined
    nest = isOfHead ? undefined : (nest ?? createNest(unit)).enter(text, own)
    if (isPending && !nest) return undefined
    indents.push(own)
  }
  return isPending ? undefined : indents
}

/** What is open after some lines. */
interface Nest {
  /** The indentation of a next line; undefined where it cannot be told. */
  expected(text: string): string | undefined
  /** What is open after that line. Undefined where it cannot be told. */
  enter(text: string, indent: string): Nest | undefined
}

/** A bracket that is open: the indentation of the line that opened it, and that of the lines in it. */
interface Level {
  own: string | undefined
  inner: string | undefined
}

interface NestState {
  levels: readonly Level[]
  /** The indentation of a line that goes on. */
  goesOn?: string | undefined
  /** That of a comment that is open. */
  comment?: string | undefined
}

function createNest(
  unit: string,
  state: NestState = { levels: [{ own: undefined, inner: undefined }] },
): Nest {
  const { levels, goesOn, comment } = state
  return {
    expected(text) {
      if (comment !== undefined) return text.startsWith("*") ? `${comment} ` : undefined
      const structure = structureOf(text)
      if (!structure) return undefined
      if (goesOn !== undefined) return structure.closes > 0 ? undefined : goesOn + unit
      if (structure.closes > 0) return levels.at(-structure.closes)?.own
      const top = levels.at(-1)
      return top?.inner ?? (top?.own === undefined ? undefined : top.own + unit)
    },
    enter(text, indent) {
      if (comment !== undefined) return createNest(unit, text.includes("*/") ? { levels } : state)
      const structure = structureOf(text)
      if (!structure) return undefined
      const kept = structure.closes === 0 ? levels : levels.slice(0, -structure.closes)
      const rest = kept.length > 0 ? kept : [{ own: undefined, inner: indent }]
      const settled =
        structure.closes > 0 || goesOn !== undefined
          ? rest
          : [...rest.slice(0, -1), { own: rest.at(-1)?.own, inner: indent }]
      const opened = Array.from({ length: structure.opens }, () => ({ own: indent, inner: undefined }))
      return createNest(unit, {
        levels: [...settled, ...opened],
        ...(structure.goesOn ? { goesOn: indent } : {}),
        ...(opensComment(text) ? { comment: indent } : {}),
      })
    },
  }
}

function structureOf(text: string): LineStructure | undefined {
  return opensComment(text) ? { closes: 0, opens: 0, goesOn: false } : lineStructure(text)
}

function opensComment(text: string): boolean {
  return text.startsWith("/*") && !text.includes("*/")
}
