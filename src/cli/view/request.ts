import type { PermissionRequest } from "../../schema/permission.ts"
import { showInvisible } from "../../util/invisible.ts"
import { createRequestCard } from "../../view/request-card.ts"
import { diffLines } from "./call.ts"
import { style } from "./style.ts"

/** Maximum number of diff lines to show. */
const maxDiffLines = 60

/** Returns true if {@link describeRequest} shows the whole diff even if `whole` is false. */
export function isShownWhole({ metadata }: PermissionRequest): boolean {
  return typeof metadata.diff !== "string" || metadata.diff.trimEnd().split("\n").length <= maxDiffLines
}

/** Describes a request: the command, each pattern and path, and the diff. Makes all hidden characters visible. */
export function describeRequest(
  request: PermissionRequest,
  { worktree, whole }: { worktree: string; whole: boolean },
): string {
  const card = createRequestCard(request, worktree)
  const { title, subagent, subject, diff, details, rules, onlyOnce } = card
  const asker = subagent === undefined ? "" : style.dim(` (the subagent ${subagent} asks)`)
  const lines = [style.bold(`? ${title}`) + asker, ...subject.flatMap(indented)]
  if (diff !== undefined) lines.push(...diffLines(diff, whole ? Number.POSITIVE_INFINITY : maxDiffLines))
  for (const { name, text } of details) {
    const [first = "", ...more] = indented(text)
    lines.push(...[`  ${name}: ${first.trimStart()}`, ...more].map(style.dim))
  }
  if (card.hasInvisibleCharacters)
    lines.push(style.yellow("  The request contains invisible characters, shown as <…>."))
  if (rules.length > 0 && whole) {
    const shown = rules.map(({ permission, pattern }) => `${permission}: ${showInvisible(pattern)}`)
    lines.push(style.dim(`  always allows ${shown.join(", ")}`))
  } else if (rules.length === 0 && onlyOnce.length > 0)
    lines.push(style.dim(`  "always" is not available: ${onlyOnce.join("; ")}`))
  return lines.join("\n")
}

function indented(text: string): string[] {
  return text.split("\n").map((line) => `    ${line}`)
}
