import { readFileSync, statSync } from "node:fs"
import type { Diagnostic, Range } from "vscode-languageserver-protocol"
import { showName } from "../../files/show-name.ts"
import type { ChangedPath } from "../../lsp/service.ts"
import type { ToolContext } from "../../tool/context.ts"
import { systemCode } from "../../util/errors.ts"
import { displayPath, isInside, realPath } from "../../util/paths.ts"
import { counted } from "../../util/words.ts"

/** A position that a language server reported in a file. */
export interface Finding {
  /** Absolute path. */
  path: string
  /** Line and character, from 1. */
  line: number
  character: number
  /** Text to show. Default: the line in the file. */
  text?: string
  /** Nesting depth in an outline. */
  depth?: number
}

/** Returns the line and character, from 1, at which a range starts. */
export function startOf(range: Range): Pick<Finding, "line" | "character"> {
  return { line: range.start.line + 1, character: range.start.character + 1 }
}

/** Converts a diagnostic to a finding with one line of text. */
export function diagnosticFinding(path: string, diagnostic: Diagnostic): Finding {
  const { severity = 1, code, range } = diagnostic
  const named = code === undefined ? "" : ` ${code}`
  const message = diagnosticMessage(diagnostic)
  return { path, ...startOf(range), text: `${severityNames[severity - 1] ?? "error"}${named}: ${message}` }
}

const severityNames = ["error", "warning", "information", "hint"]

function diagnosticMessage({ message }: Diagnostic): string {
  const text = typeof message === "string" ? message : message.value
  return text.trim().replaceAll(/\s*\n\s*/g, " / ")
}

/** Findings, rendered as text for the model. */
export interface RenderedFindings {
  output: string
  /** Number of findings in readable files, including those beyond the limit. */
  count: number
  /** Number of findings in files that cannot be read without permission. */
  hidden: number
}

/** Maximum number of findings shown, as in grep. */
const maxShown = 100

/** Maximum number of characters shown per line. */
const maxLine = 200

/** Maximum size in bytes of a file whose lines are shown. */
const maxFileBytes = 1024 * 1024

/**
 * Renders one line per finding. Omits findings in files that may not be read without permission. `hidden` counts the
 * omitted findings in files for which permission can be requested, but not those in files that may not be read at all.
 */
export async function renderFindings(
  findings: readonly Finding[],
  options: Pick<ToolContext, "directory" | "worktree" | "mayRead"> & {
    /** Output if there are no findings. */
    nothing: string
  },
): Promise<RenderedFindings> {
  const { directory, worktree, nothing } = options
  const { allowed, hidden } = await readable(findings, options)
  const linesOf = createLineReader(worktree)
  const lines = allowed.slice(0, maxShown).map((finding) => {
    const text = finding.text ?? linesOf(finding.path)[finding.line - 1] ?? ""
    return `${"  ".repeat(finding.depth ?? 0)}${findingLine({ ...finding, text }, directory)}`
  })
  const parts = [lines.length > 0 ? lines.join("\n") : hidden > 0 ? "" : nothing]
  const more = allowed.length - lines.length
  if (more > 0) parts.push(`(${more} more not shown.)`)
  if (hidden > 0)
    parts.push(
      `(Omitted ${counted(hidden, "result")} in files that cannot be read without permission. To request permission for a file, pass its path to read.)`,
    )
  return { output: parts.filter((part) => part !== "").join("\n\n"), count: allowed.length, hidden }
}

function findingLine({ path, line, character, text = "" }: Finding, directory: string): string {
  return `${showName(displayPath(path, directory))}:${line}:${character} ${cut(text.trim())}`.trimEnd()
}

async function readable(
  findings: readonly Finding[],
  { mayRead }: Pick<ToolContext, "mayRead">,
): Promise<{ allowed: Finding[]; hidden: number }> {
  const actions = new Map<string, Awaited<ReturnType<NonNullable<typeof mayRead>>>>()
  for (const { path } of findings)
    if (!actions.has(path)) actions.set(path, (await mayRead?.(path)) ?? "allow")
  return {
    allowed: findings.filter(({ path }) => actions.get(path) === "allow"),
    hidden: findings.filter(({ path }) => actions.get(path) === "ask").length,
  }
}

/**
 * Returns a function that reads the lines of a file inside the worktree. For a file outside the worktree, the function
 * returns no lines, because permission to read the file was not requested.
 */
function createLineReader(worktree: string): (path: string) => readonly string[] {
  const known = new Map<string, readonly string[]>()
  return (path) => {
    const lines = known.get(path) ?? readLines(path, worktree)
    known.set(path, lines)
    return lines
  }
}

function readLines(path: string, worktree: string): readonly string[] {
  try {
    if (!isInside(realPath(path), realPath(worktree))) return []
    const found = statSync(path)
    if (!found.isFile() || found.size > maxFileBytes) return []
    return readFileSync(path, "utf8").split(/\r?\n/)
  } catch (error) {
    // The file is deleted or unreadable. Only the position is shown.
    if (systemCode(error) === undefined) throw error
    return []
  }
}

function cut(text: string): string {
  return text.length > maxLine ? `${text.slice(0, maxLine)}…` : text
}

/** Maximum number of errors shown after an edit. */
const maxErrors = 20

/**
 * Returns text to append to a result: the errors that running language servers report in changed files, or an empty
 * string if they report no errors. Waits at most `LanguageLimits.editMs`, and does not wait if no server for these
 * files is running.
 */
export async function errorsAfterEdit(
  ctx: Pick<ToolContext, "lsp" | "abort" | "directory">,
  changes: readonly ChangedPath[],
): Promise<string> {
  const reports = (await ctx.lsp?.changed(changes, ctx.abort)) ?? []
  // A diagnostic without severity counts as an error.
  const errors = reports.flatMap(({ path, diagnostics }) =>
    diagnostics
      .filter(({ severity = 1 }) => severity === 1)
      .map((diagnostic) => diagnosticFinding(path, diagnostic)),
  )
  if (errors.length === 0) return ""
  const lines = errors.slice(0, maxErrors).map((error) => findingLine(error, ctx.directory))
  if (errors.length > maxErrors) lines.push(`(${errors.length - maxErrors} more)`)
  return `\n\nThe language server now reports:\n${lines.join("\n")}`
}
