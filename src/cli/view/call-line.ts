import type { ToolPart } from "../../schema/part.ts"
import type { ToolStateCompleted } from "../../schema/tool-state.ts"
import { type CallSummary, formatterResults, summarizeCall, todoList } from "../../view/call-summary.ts"
import { columns, oneLine, wrapped } from "../../view/visible.ts"
import { style } from "./style.ts"

/** Formats a call that starts, such as `· bash npm test`. */
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

/** Maximum number of rows of an error. Shows the cause without the advice for the model. */
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
