import { showInvisible } from "../../permission/invisible.ts"
import { partsOf } from "../../permission/pending-requests.ts"
import type { PermissionRequest } from "../../schema/permission.ts"
import { isRecord, own } from "../../util/json.ts"
import { displayPath } from "../../util/paths.ts"
import { diffLines } from "./call-body.ts"
import { style } from "./style.ts"

/** Maximum number of diff lines to show. */
const maxDiffLines = 60

/** Returns whether {@link describeRequest} shows the whole diff by default. */
export function isShownWhole({ metadata }: PermissionRequest): boolean {
  return typeof metadata.diff !== "string" || linesOf(metadata.diff).length <= maxDiffLines
}

/** Describes a request: the command, each pattern and path, and the diff. Makes all hidden characters visible. */
export function describeRequest(
  request: PermissionRequest,
  { worktree, whole }: { worktree: string; whole: boolean },
): string {
  const { permission, patterns, always, metadata, tool } = request
  const command = typeof metadata.command === "string" ? metadata.command : undefined
  // The full command is clearer than the parts that need permission.
  const subject = permission === "bash" && command !== undefined ? [command] : patterns
  const asker = tool?.parent ? style.dim(` (the subagent ${showInvisible(tool.parent.agent)} asks)`) : ""
  const lines = [
    style.bold(`? ${titleOf(permission)}`) + asker,
    ...subject.flatMap((text) => indented(text, "    ")),
  ]
  if (typeof metadata.diff === "string")
    lines.push(...diffLines(metadata.diff, whole ? Number.POSITIVE_INFINITY : maxDiffLines))
  for (const [name, value] of details(request, { subject, worktree })) {
    if (value === worktree) continue
    const [first = "", ...more] = indented(value, "    ")
    lines.push(...[`  ${name}: ${first.trimStart()}`, ...more].map(style.dim))
  }
  if (metadata.invisibleCharacters)
    lines.push(style.yellow("  The request contains invisible characters, shown as <…>."))
  if (always.length > 0 && whole) {
    const rules = partsOf(request).flatMap((part) =>
      part.always.map((pattern) => `${part.permission}: ${showInvisible(pattern)}`),
    )
    lines.push(style.dim(`  always allows ${rules.join(", ")}`))
  } else if (Array.isArray(metadata.onlyOnce))
    lines.push(style.dim(`  always is not available: ${showInvisible(metadata.onlyOnce.join("; "))}`))
  return lines.join("\n")
}

/** Returns the permission's name in rules, followed by an explanation if the name alone is unclear. */
function titleOf(permission: string): string {
  const meaning = own(meanings, permission)
  return meaning === undefined ? permission : `${permission}: ${meaning}`
}

const meanings: Readonly<Record<string, string>> = {
  doom_loop: "the model repeats itself",
  external_directory: "use files outside this project",
  network: "connect to the internet",
  private_network: "connect to this machine or its private network",
  sandbox_escape: "run without the sandbox",
}

/** Explains why a call counts as a loop. Returns an empty string for other requests. */
function repetition({ permission, metadata: { count, period } }: PermissionRequest): string {
  if (permission !== "doom_loop" || typeof count !== "number") return ""
  return typeof period === "number" && period > 1
    ? `the model has requested the same ${period} calls ${count} times in a row`
    : `the model has requested this call ${count} times in a row`
}

/** Names the rules that decided to ask, or the default. */
function decision({ metadata }: PermissionRequest, worktree: string): string {
  const rules = Array.isArray(metadata.decidedBy) ? metadata.decidedBy.filter(isRecord) : []
  const sentences = rules.map(({ permission, pattern, action, source, line }) => {
    if (source === "defaults" && pattern === "*") return "no rule allows it, and the default is to ask"
    const file = String(source).startsWith("/") ? displayPath(String(source), worktree) : String(source)
    const where = source === "defaults" ? "a default" : `${file}${typeof line === "number" ? `:${line}` : ""}`
    if (source === "a plugin") return "a plugin asks"
    const rule = `"${String(permission)}: ${String(pattern)}"`
    return action === "deny" ? `${where} denies ${rule}, which could match` : `${where} asks for ${rule}`
  })
  return [...new Set(sentences)].join("\n")
}

/** Returns named details that help the user decide. Omits details that repeat the subject of the request. */
function details(
  request: PermissionRequest,
  { subject, worktree }: { subject: readonly string[]; worktree: string },
): [name: string, text: string][] {
  const { patterns, metadata, also = [] } = request
  const named = [...subject, ...also.flatMap((part) => part.patterns)]
  const repeated = (text: string) => named.some((part) => text === part || text.endsWith(`/${part}`))
  const parts = patterns.filter((pattern) => !repeated(pattern)).join("\n")
  const notes = Object.entries(metadata).flatMap(([name, value]): [string, string][] => {
    const text = words(value)
    return noted.has(name) && !repeated(text) ? [[name, text]] : []
  })
  const others = also.map((part): [string, string] => [part.permission, part.patterns.join(", ")])
  const all: [string, string][] = [
    ["asks for", parts],
    ...others,
    ["why", repetition(request)],
    ["asks because", decision(request, worktree)],
    ...notes,
  ]
  return all.filter(([, text]) => text !== "")
}

const noted: ReadonlySet<string> = new Set([
  "input",
  "prompt",
  "command",
  "description",
  "workdir",
  "resolved",
  "reasons",
  "protected",
])

function indented(text: string, indent: string): string[] {
  return showInvisible(text)
    .split("\n")
    .map((line) => indent + line)
}

function words(value: unknown): string {
  if (Array.isArray(value)) return value.map(words).join(", ")
  return typeof value === "string" ? value : JSON.stringify(value)
}

function linesOf(diff: string): string[] {
  return diff.trimEnd().split("\n")
}
