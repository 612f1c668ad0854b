import type { ToolPart } from "../schema/part.ts"
import { terminalText } from "../util/terminal-text.ts"
import {
  type CallSummary,
  formatterResults,
  progressBar,
  summarizeCall,
  todoList,
} from "../view/call-summary.ts"
import type { SubagentState } from "../view/session-state.ts"
import { oneLine, visible } from "../view/visible.ts"
import { clip, expandHint, indented, wrap } from "./card-parts.ts"
import { renderDiff } from "./diff-view.ts"
import { renderFile } from "./image-view.ts"
import type { Paint, Theme } from "./theme.ts"

/** Options for formatting calls. */
export interface CallOptions {
  theme: Theme
  /** Whether all output and the whole diff are shown. */
  expanded: boolean
  /** Name of the key that shows all output, such as `Ctrl+O`. Empty if no key does. */
  expandKey: string
  worktree: string
  /** Subagent sessions, keyed by id. */
  subagents: ReadonlyMap<string, SubagentState>
  /** Whether to omit images, because the lines are indented. */
  hidesImages?: boolean
  /** Maximum number of lines of output that is not expanded. Default: depends on the outcome. */
  maxOutputLines?: number
}

/** Maximum number of lines of a call's output, keyed by outcome. */
const outputLines: Readonly<Record<CallSummary["outcome"], number>> = {
  ...{ pending: 0, running: 5, completed: 5, warning: 20, refused: 0, error: 20 },
}
const maxDiffLines = 40
const maxErrorLines = 3
/** Maximum number of lines of an expanded output or diff. */
const maxExpandedLines = 2_000
/** Maximum number of calls that a subagent's card shows. */
const maxSubagentCalls = 4

/**
 * Formats a call: one line with its subject and result, followed by the output, the diff or the error, and an empty
 * line.
 */
export function renderCall(part: ToolPart, width: number, options: CallOptions): string[] {
  const summary = summarizeCall(part, options.worktree)
  const lines = [titleLine(summary, width, options.theme), ...bodyLines(part, summary, { ...options, width })]
  const { state } = part
  const files = state.status === "completed" ? (state.attachments ?? []) : []
  const images = options.hidesImages ? [] : files.filter(({ mime }) => mime.startsWith("image/"))
  return [
    ...lines.map((line) => clip(line, width)),
    ...images.flatMap((file) => renderFile(file, width, options.theme)),
    "",
  ]
}

function titleLine(summary: CallSummary, width: number, theme: Theme): string {
  const { tool, subject, details, fraction, outcome } = summary
  const marks: Record<CallSummary["outcome"], [mark: string, paint: Paint]> = {
    pending: ["·", theme.dim],
    running: ["●", theme.accent],
    completed: ["✓", theme.success],
    warning: ["!", theme.warning],
    refused: ["⊘", theme.warning],
    error: ["✗", theme.error],
  }
  const [mark, paint] = marks[outcome]
  const bar = fraction === undefined ? "" : ` ${progressBar(fraction)}`
  const facts = details.map((detail) => oneLine(detail, 60)).join(" · ") + bar
  const name = visible(tool)
  const room = Math.max(10, width - name.length - facts.length - (facts === "" ? 3 : 6))
  const text = outcome === "pending" ? "…" : oneLine(subject, room)
  const line = `${paint(mark)} ${theme.bold(name)} ${text}`
  return facts === "" ? line : `${line} ${theme.dim(`· ${facts}`)}`
}

function bodyLines(part: ToolPart, summary: CallSummary, options: CallOptions & { width: number }): string[] {
  const { theme, expanded, expandKey, worktree, width } = options
  const { state } = part
  if (state.status === "pending") return []
  const { sessionID, diff, output } = state.metadata ?? {}
  if (part.tool === "task" && typeof sessionID === "string") return subagentLines(sessionID, options)
  if (state.status === "error" && typeof output !== "string") {
    const lines = indented(visible(state.error), width).map(theme.dim)
    if (expanded || lines.length <= maxErrorLines) return lines
    return [...lines.slice(0, maxErrorLines - 1), theme.dim(`  …${expandHint(options)}`)]
  }
  if (state.status !== "error" && typeof diff === "string") {
    const results = state.status === "completed" ? formatterResults(state, worktree) : []
    return [
      ...renderDiff(diff, {
        ...{ width, theme, expanded, expandKey },
        maxLines: expanded ? maxExpandedLines : maxDiffLines,
      }),
      ...results.map(({ text, problem }) => `  ${(problem ? theme.warning : theme.dim)(visible(text))}`),
    ]
  }
  const todos = todoList(part)
  // The panel above the editor shows the current list.
  if (todos.length > 0 && !expanded) return []
  if (todos.length > 0) return todos.flatMap((todo) => indented(visible(todo), width))
  const whole =
    typeof output === "string" ? output : expanded && state.status === "completed" ? state.output : ""
  const { maxOutputLines = outputLines[summary.outcome] } = options
  return lastLines(whole, expanded ? maxExpandedLines : maxOutputLines, options)
}

/**
 * Returns the end of a command's output without colors, as a terminal would show it after all control characters were
 * processed.
 */
function lastLines(
  output: string,
  max: number,
  { theme, expanded, expandKey, width }: CallOptions & { width: number },
): string[] {
  const text = terminalText(output).trimEnd()
  if (text === "" || max === 0) return []
  const lines = visible(text).split("\n")
  const hidden = Math.max(0, lines.length - max)
  const shown = lines
    .slice(hidden)
    .flatMap((line) => (expanded ? wrap(line, width - 2) : [line.replaceAll("\t", "    ")]))
    .map((line) => theme.dim(`  ${line}`))
  const hint = expandHint({ expanded, expandKey })
  const note = theme.dim(`  … ${hidden} earlier ${hidden === 1 ? "line" : "lines"}${hint}`)
  return (hidden > 0 ? [note, ...shown] : shown).map((line) => clip(line, width))
}

/** Returns the lines for a subagent's latest calls, or for all of its calls if the view is expanded. */
function subagentLines(sessionID: string, options: CallOptions & { width: number }): string[] {
  const { theme, subagents, expanded, width } = options
  const subagent = subagents.get(sessionID)
  if (!subagent) return []
  const calls = subagent.messages
    .flatMap(({ parts }) => parts)
    .filter((part): part is ToolPart => part.type === "tool" && part.parentCallID === undefined)
  const shown = expanded ? calls : calls.slice(-maxSubagentCalls)
  const hidden = calls.length - shown.length
  const inner = Math.max(10, width - 4)
  const lines = shown.flatMap((call) =>
    expanded
      ? renderCall(call, inner, { ...options, hidesImages: true }).slice(0, -1)
      : [titleLine(summarizeCall(call, options.worktree), inner, theme)],
  )
  const note = hidden > 0 ? [theme.dim(`… ${hidden} earlier ${hidden === 1 ? "call" : "calls"}`)] : []
  return [...note, ...lines].map((line) => `  ${theme.border("│")} ${clip(line, inner)}`)
}
