import type { ToolPart } from "../../schema/part.ts"
import { type ToolStateCompleted, type ToolStateError, workMs } from "../../schema/tool-state.ts"
import { isRecord } from "../../util/json.ts"
import { displayPath } from "../../util/paths.ts"
import { style } from "./style.ts"
import { columns, oneLine, wrapped } from "./visible.ts"

/** Formats a call that starts, such as `· bash npm test`. */
export function startLine(part: ToolPart, worktree: string, width: number): string {
  return oneLine(`· ${part.tool} ${subject(part, worktree)}`, width)
}

/** Formats a call that ended, on one line. Adds lines for an error, formatters or a to-do list. */
export function callLine(part: ToolPart, worktree: string, width: number): string[] {
  const { state } = part
  if (state.status === "completed") return completedLines(part, state, worktree, width)
  if (state.status === "error") return errorLines(part, state, worktree, width)
  return [startLine(part, worktree, width)]
}

function completedLines(
  part: ToolPart,
  state: ToolStateCompleted,
  worktree: string,
  width: number,
): string[] {
  const details = [
    ...titleOf(part, state, worktree),
    ...detailsOf(part.tool, state),
    ...duration(state),
  ].join(" · ")
  const room = width - columns(details) - 5
  const { exit, signal, timedOut } = state.metadata
  const failed = (typeof exit === "number" && exit !== 0) || signal !== undefined || timedOut === true
  const mark = failed ? style.yellow("!") : style.green("✓")
  const line = `${mark} ${oneLine(`${part.tool} ${subject(part, worktree)}`, Math.max(20, room))}`
  return [
    details === "" ? line : `${line} ${style.dim(`· ${details}`)}`,
    ...formattingLines(state, worktree, width),
    ...todoLines(state, width),
  ]
}

/** Maximum number of rows of an error. Shows the cause without the advice for the model. */
const maxErrorRows = 3

function errorLines(part: ToolPart, state: ToolStateError, worktree: string, width: number): string[] {
  const kind = state.metadata?.kind
  const mark = kind === "refused" || kind === "loop" ? style.yellow("⊘") : style.red("✗")
  const line = `${mark} ${oneLine(`${part.tool} ${subject(part, worktree)}`, width - 2)}`
  return [line, ...wrapped(state.error, width - 2, maxErrorRows).map((row) => style.dim(`  ${row}`))]
}

/** Input keys that describe a call, in order of preference. */
const subjectKeys = ["command", "pattern", "filePath", "path", "url", "query", "id", "action", "description"]

/** Returns the text that identifies a call, such as its command or path. */
function subject({ tool, state }: ToolPart, worktree: string): string {
  const { input } = state
  for (const key of subjectKeys) {
    const value = input[key]
    if (typeof value !== "string" || value === "") continue
    return key === "filePath" || key === "path" ? displayPath(value, worktree) : value
  }
  return state.status === "completed" && state.title !== tool ? state.title : ""
}

/** Returns the title that the tool gave its result, if the title says more than the input. */
function titleOf(part: ToolPart, { title, input }: ToolStateCompleted, worktree: string): string[] {
  const shown = [part.tool, "", subject(part, worktree), ...Object.values(input)]
  return shown.includes(title) ? [] : [oneLine(title, maxTitle)]
}

/** Maximum width of a result's title, in columns. */
const maxTitle = 60

function detailsOf(tool: string, { metadata, output }: ToolStateCompleted): string[] {
  const details: string[] = []
  if (typeof metadata.exit === "number") details.push(`exit ${metadata.exit}`)
  if (typeof metadata.signal === "string") details.push(`killed by ${metadata.signal}`)
  if (metadata.timedOut === true) details.push("timed out")
  if (typeof metadata.jobID === "string") details.push(`continues as ${metadata.jobID}`)
  if (typeof metadata.diff === "string") details.push(diffCount(metadata.diff))
  if (typeof metadata.matches === "number") details.push(plural(metadata.matches, "match", "matches"))
  if (tool === "task" && typeof metadata.count === "number")
    details.push(String(metadata.agent), plural(metadata.count, "call", "calls"))
  else if (typeof metadata.count === "number")
    details.push(
      plural(metadata.count, tool === "list" ? "entry" : "file", tool === "list" ? "entries" : "files"),
    )
  if (typeof metadata.shownLines === "number") details.push(plural(metadata.shownLines, "line", "lines"))
  if (metadata.truncated === true && details.length === 0)
    details.push(`truncated, ${output.length} characters`)
  if (typeof metadata.repaired === "string") details.push("repaired")
  return details
}

/** Returns the duration if it is long enough to be noticeable. Time spent waiting for the user does not count. */
function duration({ time }: ToolStateCompleted): string[] {
  const ms = workMs(time)
  return ms < 500 ? [] : [`${(ms / 1000).toFixed(1)} s`]
}

function plural(count: number, one: string, many: string): string {
  return `${count} ${count === 1 ? one : many}`
}

const todoMarks: Readonly<Record<string, string>> = {
  completed: "☑",
  in_progress: "▸",
  pending: "☐",
  cancelled: "☒",
}

function todoLines({ metadata }: ToolStateCompleted, width: number): string[] {
  if (!Array.isArray(metadata.todos)) return []
  return metadata.todos
    .filter(isRecord)
    .map((todo) => `  ${todoMarks[String(todo.status)] ?? "☐"} ${oneLine(String(todo.content), width - 4)}`)
}

/**
 * Describes the results of formatters, one per line: `formatted by biome · +2 −1` or `not formatted: biome: …`. Names
 * the file if the call changed several.
 */
export function formattingLines({ metadata }: ToolStateCompleted, worktree: string, width: number): string[] {
  const named = (file: Record<string, unknown>) =>
    typeof file.path === "string" ? `${displayPath(file.path, worktree)} ` : ""
  const done = [metadata.formatted].flat().flatMap((file) => {
    if (!isRecord(file) || !Array.isArray(file.by)) return []
    const count = typeof file.diff === "string" && file.diff !== "" ? ` · ${diffCount(file.diff)}` : ""
    return `${named(file)}formatted by ${file.by.join(" and ")}${count}`
  })
  const failed = [metadata.notFormatted].flat().flatMap((file) => {
    if (typeof file === "string") return `not formatted: ${file}`
    return isRecord(file) ? `${named(file)}not formatted: ${String(file.problem)}` : []
  })
  return [
    ...done.map((text) => style.dim(`  ${oneLine(text, width - 2)}`)),
    ...failed.map((text) => style.yellow(`  ${oneLine(text, width - 2)}`)),
  ]
}

/** Returns the number of added and removed lines of a unified diff, such as `+3 −1`. */
export function diffCount(diff: string): string {
  const lines = diff.split("\n")
  const count = (sign: string) =>
    lines.filter((line) => line.startsWith(sign) && !line.startsWith(sign.repeat(3))).length
  return `+${count("+")} −${count("-")}`
}
