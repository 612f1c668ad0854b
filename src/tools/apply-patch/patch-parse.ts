import { TackleError } from "../../util/errors.ts"

/** One line of a hunk, without its prefix. */
export interface PatchLine {
  kind: "context" | "remove" | "add"
  text: string
}

/** One change within a file. */
export interface PatchHunk {
  /** Text after each `@@`: lines of the file above the change, outermost first. */
  anchors: string[]
  lines: PatchLine[]
  /** Whether the change is at the end of the file. */
  atEnd: boolean
  /** Line number of the hunk in the patch, from 1. */
  line: number
}

/** The changes to one file. Paths are spelled as in the patch. */
export type PatchSection =
  | { kind: "add"; path: string; lines: string[] }
  | { kind: "delete"; path: string }
  | { kind: "update"; path: string; moveTo?: string; hunks: PatchHunk[] }

/** Thrown if the text is not a valid patch. */
export class PatchSyntaxError extends TackleError {
  constructor(problem: string) {
    super(`patchText is not a valid patch: ${problem} Nothing was changed.`, {
      code: "patch.syntax",
      recoverable: true,
    })
  }
}

/**
 * Parses a patch. Ignores text around the patch, such as a here-document or a Markdown fence. Accepts LF and CRLF line
 * endings, empty context lines without a prefix, an indented patch, and markers in another case or with other blanks.
 * Joins sections that update the same path. Throws {@link PatchSyntaxError} if the text is not a valid patch.
 */
export function parsePatch(patchText: string): PatchSection[] {
  const lines = withoutIndent(patchText.split(/\r\n|\n/))
  const first = lines.findIndex((line) => beginMarker.test(line))
  if (first === -1) throw new PatchSyntaxError(`it has no line "${begin}".`)
  const last = lastMarker(lines)
  if (last < first)
    throw new PatchSyntaxError(`it has no line "${end}" after "${begin}", so it may have been cut off.`)
  assertOnlyWrapping([...lines.slice(0, first), ...lines.slice(last + 1)])
  const reader: Reader = { lines: lines.slice(first + 1, last), at: 0, offset: first + 2 }
  const sections: PatchSection[] = []
  for (skipBlank(reader); reader.at < reader.lines.length; skipBlank(reader)) {
    add(sections, readSection(reader))
  }
  if (sections.length === 0) throw new PatchSyntaxError("it is empty.")
  return sections
}

const begin = "*** Begin Patch"
const end = "*** End Patch"
const beginMarker = /^\s*\*{3}\s*begin\s*patch\s*(?:\*{3}\s*)?$/i
const endMarker = /^\s*\*{3}\s*end\s*patch\s*(?:\*{3}\s*)?$/i
const endOfFile = /^\*{3}\s*end\s+of\s+file\s*$/i
/** Matches the head of a section, also within a hunk, where a line with a leading blank is context. */
const sectionHead = /^\*{3}\s*(add|delete|update)\s+file\s*:(.*)$/i
const moveHead = /^\*{3}\s*move\s+to\s*:(.*)$/i
/** Matches a hunk header in a unified diff. Its line numbers are ignored. */
const unifiedHead = /^-\d+(?:,\d+)? \+\d+(?:,\d+)? @@ ?(.*)$/

interface Reader {
  lines: readonly string[]
  at: number
  /** Line number of the first element of `lines` in the patch, from 1. */
  offset: number
}

/** Removes the indentation of the first marker from all lines, if all lines up to the last marker have it. */
function withoutIndent(lines: readonly string[]): readonly string[] {
  const first = lines.findIndex((line) => beginMarker.test(line))
  const indent = /^\s*/.exec(lines[first] ?? "")?.[0] ?? ""
  const patch = lines.slice(first, lastMarker(lines) + 1)
  if (indent === "" || !patch.every((line) => line.startsWith(indent) || line.trim() === "")) return lines
  return lines.map((line) => (line.startsWith(indent) ? line.slice(indent.length) : line))
}

/** Returns the index of the last end marker, or -1. A marker with a leading blank could be a context line. */
function lastMarker(lines: readonly string[]): number {
  const plain = lines.findLastIndex((line) => !/^\s/.test(line) && endMarker.test(line))
  return plain === -1 ? lines.findLastIndex((line) => endMarker.test(line)) : plain
}

/**
 * Throws {@link PatchSyntaxError} if a line before or after the patch has patch syntax. Such a line may belong to a
 * second patch, or to a patch whose start was lost.
 */
function assertOnlyWrapping(outside: readonly string[]): void {
  const stray = outside.find((line) => /^\*\*\* /.test(line))
  if (stray !== undefined)
    throw new PatchSyntaxError(`the line "${stray.trim()}" is not between "${begin}" and "${end}".`)
}

function skipBlank(reader: Reader): void {
  while (reader.lines[reader.at]?.trim() === "") reader.at += 1
}

function add(sections: PatchSection[], section: PatchSection): void {
  const same = sections.find(
    (earlier) => earlier.kind === "update" && earlier.path === section.path && earlier.moveTo === undefined,
  )
  if (same?.kind === "update" && section.kind === "update" && section.moveTo === undefined) {
    same.hunks.push(...section.hunks)
  } else sections.push(section)
}

function readSection(reader: Reader): PatchSection {
  const line = reader.lines[reader.at] ?? ""
  const [, verb, name = ""] = sectionHead.exec(line.trimStart()) ?? []
  if (verb === undefined) {
    throw problem(
      reader,
      "expected *** Add File: path, *** Update File: path or *** Delete File: path",
      reader.at,
    )
  }
  const path = pathIn(name, reader)
  reader.at += 1
  if (/^add$/i.test(verb)) return { kind: "add", path, lines: readAdded(reader) }
  return /^delete$/i.test(verb) ? readDelete(path, reader) : readUpdate(path, reader)
}

function pathIn(text: string, reader: Reader): string {
  const path = text.trim()
  if (path === "") throw problem(reader, "a path is missing", reader.at)
  return path
}

function readAdded(reader: Reader): string[] {
  const added: string[] = []
  for (; reader.at < reader.lines.length; reader.at++) {
    const line = reader.lines[reader.at] ?? ""
    if (sectionHead.test(line.trimStart())) break
    if (line.startsWith("+")) added.push(line.slice(1))
    else if (line.trim() === "" && isBlankUntilSection(reader)) break
    else if (!endOfFile.test(line.trimStart())) {
      throw problem(reader, 'every line of a new file must begin with "+"', reader.at)
    }
  }
  return added
}

function readDelete(path: string, reader: Reader): PatchSection {
  skipBlank(reader)
  const line = reader.lines[reader.at]
  if (line !== undefined && !sectionHead.test(line.trimStart())) {
    throw problem(reader, "a *** Delete File section must not contain other lines", reader.at)
  }
  return { kind: "delete", path }
}

function readUpdate(path: string, reader: Reader): PatchSection {
  const first = reader.at - 1
  const [, target] = moveHead.exec(reader.lines[reader.at] ?? "") ?? []
  const section: Extract<PatchSection, { kind: "update" }> = { kind: "update", path, hunks: [] }
  if (target !== undefined) {
    section.moveTo = pathIn(target, reader)
    reader.at += 1
  }
  while (reader.at < reader.lines.length && !sectionHead.test(reader.lines[reader.at] ?? "")) {
    if (isBlankUntilSection(reader)) break
    section.hunks.push(readHunk(reader))
  }
  if (section.hunks.length === 0 && section.moveTo === undefined) {
    throw problem(reader, "an update needs lines that begin with a space, - or +", first)
  }
  return section
}

function readHunk(reader: Reader): PatchHunk {
  const first = reader.at
  const hunk: PatchHunk = { anchors: [], lines: [], atEnd: false, line: reader.offset + first }
  for (; reader.lines[reader.at]?.startsWith("@@"); reader.at++) {
    const text = (reader.lines[reader.at] ?? "").slice(2).replace(/^ /, "").trimEnd()
    const anchor = unifiedHead.exec(text)?.[1] ?? text
    if (anchor.trim() !== "") hunk.anchors.push(anchor)
  }
  for (; reader.at < reader.lines.length; reader.at++) {
    const line = reader.lines[reader.at] ?? ""
    if (line.startsWith("@@") || sectionHead.test(line)) break
    const isLast = reader.at === reader.lines.length - 1
    if (endOfFile.test(isLast ? line.trimStart() : line)) {
      hunk.atEnd = true
      reader.at += 1
      break
    }
    hunk.lines.push(readLine(line, reader))
  }
  dropBlankEnd(hunk, reader)
  if (!hunk.lines.some(({ kind }) => kind !== "context")) {
    throw problem(reader, "the hunk changes nothing: it needs a line that begins with - or +", first)
  }
  return hunk
}

function readLine(line: string, reader: Reader): PatchLine {
  if (line === "") return { kind: "context", text: "" }
  const kind = marks.get(line.charAt(0))
  if (kind === undefined) {
    throw problem(reader, 'expected a line that begins with a space, "-", "+" or "@@"', reader.at)
  }
  return { kind, text: line.slice(1) }
}

const marks = new Map<string, PatchLine["kind"]>([
  [" ", "context"],
  ["-", "remove"],
  ["+", "add"],
])

/** Removes empty lines at the end of a hunk. They separate the hunk from the next header and are not context. */
function dropBlankEnd(hunk: PatchHunk, reader: Reader): void {
  if (hunk.atEnd) return
  for (let at = reader.at - 1; reader.lines[at] === "" && hunk.lines.length > 0; at--) hunk.lines.pop()
}

function isBlankUntilSection({ lines, at }: Reader): boolean {
  if (lines[at]?.trim() !== "") return false
  const next = lines.slice(at).find((line) => line.trim() !== "")
  return next === undefined || sectionHead.test(next)
}

function problem(reader: Reader, what: string, at: number): PatchSyntaxError {
  const line = reader.lines[at]
  const shown =
    line === undefined ? "the end of the patch" : `line ${reader.offset + at} ("${line.slice(0, 100)}")`
  return new PatchSyntaxError(`at ${shown}: ${what}.`)
}
