import type { ToolPart } from "../schema/part.ts"
import type { ToolStateCompleted } from "../schema/tool-state.ts"
import { isRecord } from "../util/json.ts"
import { displayPath } from "./display-path.ts"

/** A one-line summary of a call. Its texts come from models and tools, so escape them before you display them. */
export interface CallSummary {
  tool: string
  /** Text that identifies the call, such as the command or the path. May be empty. */
  subject: string
  /**
   * Facts about the result, such as `exit 1`, `+3 −1` or `12 lines`. For a running call, the title and the progress
   * that the tool reports, such as `uploading` and `50%`. Otherwise empty.
   */
  details: string[]
  /** The completed share of a running call, from 0 to 1. Absent if the tool does not report it. */
  fraction?: number
  /**
   * `warning` means that the call ended with a result that the user should notice, such as a failed command. `refused`
   * means that the call did not run, because it was refused, for example by the user, a rule or the loop protection.
   */
  outcome: "pending" | "running" | "completed" | "warning" | "refused" | "error"
}

/** Summarizes a call. Shows paths inside the worktree relative to it. */
export function summarizeCall(part: ToolPart, worktree: string): CallSummary {
  const { tool, state } = part
  const summary = { tool, subject: subjectOf(part, worktree) }
  if (state.status === "completed") {
    const details = [
      ...titleOf(state.title, { tool, subject: summary.subject, input: state.input }),
      ...detailsOf(tool, state),
      ...durationOf(state.time),
    ]
    return { ...summary, details, outcome: hasFailed(state.metadata) ? "warning" : "completed" }
  }
  if (state.status === "error") {
    const kind = state.metadata?.kind
    return { ...summary, details: [], outcome: kind === "refused" || kind === "loop" ? "refused" : "error" }
  }
  if (state.status === "pending") return { ...summary, details: [], outcome: "pending" }
  const { text, fraction } = progressOf(state.metadata?.progress)
  const title = titleOf(state.title ?? "", { tool, subject: summary.subject, input: state.input })
  return { ...summary, details: [...title, ...(text === "" ? [] : [text])], fraction, outcome: "running" }
}

/** Reads the progress that a tool reports: a percentage, or the number of completed items and, if known, of all items. */
function progressOf(progress: unknown): { text: string; fraction?: number } {
  if (typeof progress === "number" && Number.isFinite(progress)) {
    const percent = Math.min(100, Math.max(0, progress))
    return { text: `${Math.round(percent)}%`, fraction: percent / 100 }
  }
  if (!isRecord(progress) || typeof progress.done !== "number") return { text: "" }
  const { done, total } = progress
  if (typeof total !== "number" || !(total > 0)) return { text: String(done) }
  return { text: `${done}/${total}`, fraction: Math.min(1, Math.max(0, done / total)) }
}

/** Returns a bar of ten characters for the completed share of a call, such as `███░░░░░░░`. */
export function progressBar(fraction: number): string {
  const full = Math.floor(fraction * 10)
  return "█".repeat(full) + "░".repeat(10 - full)
}

function hasFailed({ exit, signal, timedOut }: Record<string, unknown>): boolean {
  return (typeof exit === "number" && exit !== 0) || signal !== undefined || timedOut === true
}

/** Input keys that describe a call, in order of preference. */
const subjectKeys = ["command", "pattern", "filePath", "path", "url", "query", "id", "action", "description"]

function subjectOf({ tool, state }: ToolPart, worktree: string): string {
  const { input } = state
  for (const key of subjectKeys) {
    const value = input[key]
    if (typeof value !== "string" || value === "") continue
    return key === "filePath" || key === "path" ? displayPath(value, worktree) : value
  }
  return state.status === "completed" && state.title !== tool ? state.title : ""
}

/** Returns the title that the tool gave its result, or an empty list if the title repeats the input. */
function titleOf(
  title: string,
  { tool, subject, input }: { tool: string; subject: string; input: Record<string, unknown> },
): string[] {
  const shown = [tool, "", subject, ...Object.values(input)]
  return shown.includes(title) ? [] : [cut(title)]
}

/** Maximum length of a result's title in characters. */
const maxTitle = 60

function cut(title: string): string {
  return title.length > maxTitle ? `${title.slice(0, maxTitle - 1)}…` : title
}

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

/**
 * Returns the duration, or an empty list if it is too short to be noticeable. Time spent waiting for the user does not
 * count.
 */
function durationOf({ start, end, waited = 0 }: ToolStateCompleted["time"]): string[] {
  const ms = end - start - waited
  return ms < 500 ? [] : [`${(ms / 1000).toFixed(1)} s`]
}

function plural(count: number, one: string, many: string): string {
  return `${count} ${count === 1 ? one : many}`
}

/** Returns the to-do list that a call wrote, as lines that begin with a mark. Returns an empty list for other calls. */
export function todoList({ state }: ToolPart): string[] {
  if (state.status !== "completed" || !Array.isArray(state.metadata.todos)) return []
  return state.metadata.todos.filter(isRecord).map(todoLine)
}

const todoMarks: Readonly<Record<string, string>> = {
  completed: "☑",
  in_progress: "▸",
  pending: "☐",
  cancelled: "☒",
}

/** Formats a to-do list entry, such as `☑ write the test`. */
export function todoLine({ status, content }: { status?: unknown; content?: unknown }): string {
  return `${todoMarks[String(status)] ?? "☐"} ${String(content)}`
}

/**
 * Describes the results of formatters, one per line: `formatted by biome · +2 −1` or `not formatted: biome: …`.
 * Includes the file name if the call changed several files. `problem` is true for a file that was not formatted.
 */
export function formatterResults(
  { metadata }: Pick<ToolStateCompleted, "metadata">,
  worktree: string,
): { text: string; problem: boolean }[] {
  const named = (file: Record<string, unknown>) =>
    typeof file.path === "string" ? `${displayPath(file.path, worktree)} ` : ""
  const done = [metadata.formatted].flat().flatMap((file) => {
    if (!isRecord(file) || !Array.isArray(file.by)) return []
    const count = typeof file.diff === "string" && file.diff !== "" ? ` · ${diffCount(file.diff)}` : ""
    return { text: `${named(file)}formatted by ${file.by.join(" and ")}${count}`, problem: false }
  })
  const failed = [metadata.notFormatted].flat().flatMap((file) => {
    if (typeof file === "string") return { text: `not formatted: ${file}`, problem: true }
    if (!isRecord(file)) return []
    return { text: `${named(file)}not formatted: ${String(file.problem)}`, problem: true }
  })
  return [...done, ...failed]
}

/** Returns the numbers of added and removed lines in a unified diff, such as `+3 −1`. */
export function diffCount(diff: string): string {
  const lines = diff.split("\n")
  const count = (sign: string) =>
    lines.filter((line) => line.startsWith(sign) && !line.startsWith(sign.repeat(3))).length
  return `+${count("+")} −${count("-")}`
}
