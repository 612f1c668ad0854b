import { readFileSync, statSync } from "node:fs"
import { showName } from "../../files/show-name.ts"
import type { ToolContext } from "../../tool/context.ts"
import { systemCode } from "../../util/errors.ts"
import { displayPath, isInside, realPath } from "../../util/paths.ts"
import type { Finding } from "./finding.ts"

/** Findings as the model reads them. */
export interface ShownFindings {
  output: string
  /** All that may be shown, whether there was room for it or not. */
  count: number
  /** Those in files that would have to be asked for. */
  withheld: number
}

/** So many are shown. As many as grep shows: more are a question that was too wide. */
const maxShown = 100

/** So much of a line is shown, in characters. */
const maxLine = 200

/** Lines of larger files are not looked up, in bytes. */
const maxFileBytes = 1024 * 1024

/**
 * One line each. What lies in files that `read` would not be let near is left out: silently where it is forbidden,
 * counted where a person would be asked.
 */
export async function renderFindings(
  findings: readonly Finding[],
  options: Pick<ToolContext, "directory" | "worktree" | "mayRead"> & {
    /** The output where there is nothing. */
    nothing: string
  },
): Promise<ShownFindings> {
  const { directory, worktree, nothing } = options
  const { allowed, withheld } = await readable(findings, options)
  const linesOf = createLineReader(worktree)
  const lines = allowed.slice(0, maxShown).map((finding) => {
    const text = finding.text ?? linesOf(finding.path)[finding.line - 1] ?? ""
    return `${"  ".repeat(finding.depth ?? 0)}${placeLine({ ...finding, text }, directory)}`
  })
  const more = allowed.length - lines.length
  const notes = [
    ...(more > 0 ? [`(${more} more not shown. Narrow the query.)`] : []),
    ...(withheld > 0
      ? [`(Left out ${withheld} in files that need permission to read. To request it, read one of them.)`]
      : []),
  ]
  const found = lines.length > 0 ? lines.join("\n") : withheld > 0 ? "" : nothing
  return {
    output: [found, ...notes].filter((part) => part !== "").join("\n\n"),
    count: allowed.length,
    withheld,
  }
}

/** A finding with its place, in one line. */
export function placeLine({ path, line, character, text = "" }: Finding, directory: string): string {
  return `${showName(displayPath(path, directory))}:${line}:${character} ${cut(text.trim())}`.trimEnd()
}

async function readable(
  findings: readonly Finding[],
  { mayRead }: Pick<ToolContext, "mayRead">,
): Promise<{ allowed: Finding[]; withheld: number }> {
  const actions = new Map<string, Awaited<ReturnType<NonNullable<typeof mayRead>>>>()
  for (const { path } of findings)
    if (!actions.has(path)) actions.set(path, (await mayRead?.(path)) ?? "allow")
  return {
    allowed: findings.filter(({ path }) => actions.get(path) === "allow"),
    withheld: findings.filter(({ path }) => actions.get(path) === "ask").length,
  }
}

/** The lines of files inside the worktree; what lies outside was not asked for, and only its place is told. */
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
    // Gone meanwhile, or not readable for us: its place is told all the same.
    if (systemCode(error) === undefined) throw error
    return []
  }
}

function cut(text: string): string {
  return text.length > maxLine ? `${text.slice(0, maxLine)}…` : text
}
