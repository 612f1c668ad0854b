import { stripVTControlCharacters } from "node:util"
import type { ToolPart } from "../../schema/part.ts"
import type { ToolStateCompleted } from "../../schema/tool-state.ts"
import { showInvisible } from "../../util/invisible.ts"
import { counted } from "../../util/words.ts"
import {
  type CallSummary,
  formatterResults,
  progressBar,
  summarizeCall,
  todoList,
} from "../../view/call-summary.ts"
import { clipped, columns, oneLine, visible, wrapped } from "../../view/visible.ts"
import { style } from "./style.ts"

/** Formats the start of a call, such as `· bash npm test`. */
export function startLine(part: ToolPart, worktree: string, width: number): string {
  const { tool, subject } = summarizeCall(part, worktree)
  return oneLine(`· ${tool} ${subject}`, width)
}

/** Formats a call that ended, on one line. Adds lines for an error, formatters or a to-do list. */
export function callLine(part: ToolPart, worktree: string, width: number): string[] {
  const { state } = part
  const summary = summarizeCall(part, worktree)
  if (state.status === "error") {
    const line = `${marks[summary.outcome]} ${oneLine(`${summary.tool} ${summary.subject}`, width - 2)}`
    return [line, ...wrapped(state.error, width - 2, maxErrorRows).map((row) => style.dim(`  ${row}`))]
  }
  if (state.status !== "completed") return [startLine(part, worktree, width)]
  return [
    completedLine(summary, width),
    ...formattingLines(state, worktree, width),
    ...todoList(part).map((todo) => `  ${oneLine(todo, width - 2)}`),
  ]
}

/**
 * Maximum number of rows for an error. These rows show the cause. The advice for the model, which follows it, is cut
 * off.
 */
const maxErrorRows = 3

const marks: Readonly<Record<CallSummary["outcome"], string>> = {
  pending: "·",
  running: "·",
  completed: style.green("✓"),
  warning: style.yellow("!"),
  refused: style.yellow("⊘"),
  error: style.red("✗"),
}

function completedLine({ tool, subject, details, outcome }: CallSummary, width: number): string {
  const facts = details.map((detail) => oneLine(detail, maxDetail)).join(" · ")
  const room = width - columns(facts) - 5
  const line = `${marks[outcome]} ${oneLine(`${tool} ${subject}`, Math.max(20, room))}`
  return facts === "" ? line : `${line} ${style.dim(`· ${facts}`)}`
}

/** Maximum width of a detail, in columns. */
const maxDetail = 60

/** Formats the results of formatters, one line for each file. */
export function formattingLines(
  state: Pick<ToolStateCompleted, "metadata">,
  worktree: string,
  width: number,
): string[] {
  return formatterResults(state, worktree).map(({ text, problem }) => {
    const paint = problem ? style.yellow : style.dim
    return paint(`  ${oneLine(text, width - 2)}`)
  })
}

/** Maximum number of diff lines below a call. */
const maxDiffLines = 60
/** Maximum number of lines shown from the end of a command's output, depending on whether the command succeeded. */
const outputLines = 8
const failureLines = 30

/**
 * Returns the lines that show what a finished call did: an edit's diff, or the end of a command's output. Returns an
 * empty list for other calls.
 */
export function callBody({ state }: ToolPart, width: number): string[] {
  if (state.status !== "completed" && state.status !== "error") return []
  const { diff, output, exit } = state.metadata ?? {}
  if (state.status === "completed" && typeof diff === "string") return diffLines(diff, maxDiffLines)
  if (typeof output !== "string" || (state.status === "completed" && exit === undefined)) return []
  const rows = state.status === "completed" && exit === 0 ? outputLines : failureLines
  const lines = plainLines(output)
  const cut = lines.length - rows
  const more = cut > 0 ? [style.dim(`  … ${counted(cut, "earlier line")}`)] : []
  return [...more, ...lines.slice(-rows).map((line) => style.dim(clipped(`  ${line}`, width)))]
}

/**
 * Returns lines about a running call: its title and progress on one line, with a bar, and the last `rows` lines of its output.
 * Omits a title that repeats the tool's name or an argument. Returns an empty list for a call that is not running.
 */
export function progressLines(part: ToolPart, { rows }: { rows: number }): string[] {
  const { state } = part
  if (state.status !== "running") return []
  const { details, fraction } = summarizeCall(part, "")
  const words = fraction === undefined ? details : [...details, progressBar(fraction)]
  const output = state.metadata?.output
  const lines = typeof output === "string" && rows > 0 ? plainLines(output).slice(-rows) : []
  return [...(words.length > 0 ? [visible(words.join(" "))] : []), ...lines]
}

/**
 * Formats a diff with colors. Shows at most `max` lines, followed by the number of hidden lines. Makes hidden
 * characters visible.
 */
export function diffLines(diff: string, max: number): string[] {
  const lines = diff.trimEnd().split("\n")
  const shown = lines.slice(0, max).map((line) => {
    const text = `  ${showInvisible(line, { keepTabs: true })}`
    if (line.startsWith("+")) return style.green(text)
    return line.startsWith("-") ? style.red(text) : style.dim(text)
  })
  const left = lines.length - shown.length
  return left > 0 ? [...shown, style.dim(`  … ${counted(left, "more line")}`)] : shown
}

/**
 * Returns the lines of a command's output as a terminal would finally show them, without colors and without whitespace
 * at the end.
 */
function plainLines(output: string): string[] {
  const text = stripVTControlCharacters(output).replaceAll("\r\n", "\n").trimEnd()
  if (text === "") return []
  return text
    .split("\n")
    .map((line) => visible(line.slice(line.lastIndexOf("\r") + 1)).replaceAll("\t", "    "))
}
