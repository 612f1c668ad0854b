import { diffWordsWithSpace, parsePatch } from "diff"
import { showInvisible } from "../util/invisible.ts"
import { counted } from "../util/words.ts"
import { clip, expandHint, wrap } from "./card-parts.ts"
import type { Theme } from "./theme.ts"

/** A line of a diff with its number in the old or new file. */
interface DiffLine {
  sign: "+" | "-" | " "
  text: string
  number: number
}

/** Options for {@link renderDiff}. */
export interface DiffOptions {
  width: number
  theme: Theme
  maxLines: number
  /** Whether the view is expanded already, so that the key does not show more. */
  expanded?: boolean
  /** Name of the key that shows all lines, such as `Ctrl+O`. If it is not set, no key is shown. */
  expandKey?: string
  /** Whether lines that are wider than the width are wrapped instead of cut. */
  wraps?: boolean
}

/**
 * Formats a unified diff with line numbers. Highlights the changed words of a changed line. Shows at most `maxLines`
 * lines, followed by the number of hidden lines. Makes hidden characters visible.
 */
export function renderDiff(diff: string, options: DiffOptions): string[] {
  const { theme } = options
  const files = parsed(diff)
  if (!files) return plainDiff(diff, options)
  const lines = files.flatMap(({ name, hunks }) => {
    const digits = String(Math.max(1, ...hunks.flat().map(({ number }) => number))).length
    const body = hunks.flatMap((hunk, index) => [
      ...(index > 0 ? [theme.dim(`  ${" ".repeat(digits)} ⋮`)] : []),
      ...hunkLines(hunk, digits, theme),
    ])
    return files.length > 1 ? [`  ${theme.bold(showInvisible(name))}`, ...body] : body
  })
  return limited(lines, options)
}

/** Formats a diff that cannot be parsed, such as a shortened diff. */
function plainDiff(diff: string, options: DiffOptions): string[] {
  const { theme } = options
  const lines = diff
    .trimEnd()
    .split("\n")
    .map((line) => {
      const text = `  ${readable(line)}`
      if (line.startsWith("+")) return theme.added(text)
      return line.startsWith("-") ? theme.removed(text) : theme.dim(text)
    })
  return limited(lines, options)
}

function limited(
  lines: readonly string[],
  { width, theme, maxLines, wraps, ...options }: DiffOptions,
): string[] {
  const first = lines.slice(0, maxLines)
  const shown = wraps ? first.flatMap((line) => wrapped(line, width)) : first.map((line) => clip(line, width))
  const left = lines.length - first.length
  const note = theme.dim(`  … ${counted(left, "more line")}${expandHint(options)}`)
  return left > 0 ? [...shown, clip(note, width)] : shown
}

/** Wraps a line, and indents the lines after the first. */
function wrapped(line: string, width: number): string[] {
  const indent = 6
  return wrap(line, Math.max(1, width - indent)).map((each, index) =>
    clip(index === 0 ? each : " ".repeat(indent) + each, width),
  )
}

/** Parses a diff. Returns undefined if it is not a complete unified diff. */
function parsed(diff: string): { name: string; hunks: DiffLine[][] }[] | undefined {
  try {
    const files = parsePatch(diff)
    if (files.length === 0 || files.some(({ hunks }) => hunks.length === 0)) return undefined
    return files.map(({ oldFileName = "", newFileName = "", hunks }) => ({
      name: newFileName === "/dev/null" ? oldFileName : newFileName,
      hunks: hunks.map(({ lines, oldStart, newStart }) => numbered(lines, oldStart, newStart)),
    }))
  } catch {
    return undefined
  }
}

function numbered(lines: readonly string[], oldStart: number, newStart: number): DiffLine[] {
  let [before, after] = [oldStart, newStart]
  return lines.flatMap((line): DiffLine[] => {
    const text = line.slice(1)
    if (line.startsWith("-")) return [{ sign: "-", text, number: before++ }]
    if (line.startsWith("\\")) return []
    if (!line.startsWith("+")) before += 1
    return [{ sign: line.startsWith("+") ? "+" : " ", text, number: after++ }]
  })
}

function hunkLines(lines: readonly DiffLine[], digits: number, theme: Theme): string[] {
  return lines.map((line, index) => {
    const { sign, number } = line
    const start = `  ${theme.dim(String(number).padStart(digits))} `
    if (sign === " ") return `${start}  ${theme.dim(readable(line.text))}`
    const partner = partnerOf(lines, index)
    const text = partner === undefined ? readable(line.text) : highlighted(line, partner, theme)
    const paint = sign === "+" ? theme.added : theme.removed
    return `${start}${paint(`${sign} ${text}`)}`
  })
}

/**
 * Returns the text that the line replaces, or the text that replaces the line. Returns undefined unless the hunk
 * replaces lines with the same number of lines at this position.
 */
function partnerOf(lines: readonly DiffLine[], index: number): string | undefined {
  const { sign } = lines[index] ?? {}
  if (sign !== "+" && sign !== "-") return undefined
  let start = index
  while (start > 0 && lines[start - 1]?.sign !== " ") start -= 1
  let end = index
  while (end + 1 < lines.length && lines[end + 1]?.sign !== " ") end += 1
  const block = lines.slice(start, end + 1)
  const removed = block.filter((line) => line.sign === "-")
  const added = block.filter((line) => line.sign === "+")
  if (removed.length !== added.length) return undefined
  const own = sign === "-" ? removed : added
  const other = sign === "-" ? added : removed
  return other[own.indexOf(lines[index] as DiffLine)]?.text
}

/** Maximum length of a line whose words are compared. */
const maxCompared = 500

/** Inverts the colors of the words that differ, unless most of the line differs. */
function highlighted({ sign, text }: DiffLine, partner: string, theme: Theme): string {
  if (text.length > maxCompared || partner.length > maxCompared) return readable(text)
  const [before, after] = sign === "-" ? [text, partner] : [partner, text]
  const words = diffWordsWithSpace(before, after).filter(
    (word) => !(sign === "-" ? word.added : word.removed),
  )
  const changed = words.filter((word) => word.added || word.removed)
  const size = changed.reduce((sum, { value }) => sum + value.length, 0)
  if (size > text.length * 0.7) return readable(text)
  return words
    .map((word) => (word.added || word.removed ? theme.inverse(readable(word.value)) : readable(word.value)))
    .join("")
}

function readable(text: string): string {
  return showInvisible(text, { keepTabs: true }).replaceAll("\t", "    ")
}
