import type { PermissionRequest } from "../schema/permission.ts"
import { showInvisible } from "../util/invisible.ts"
import { isRecord, own } from "../util/json.ts"
import { displayPath } from "./display-path.ts"

/** A permission request, prepared for display. Invisible characters are replaced by text such as `<U+202E>`. */
export interface RequestCard {
  /** Name of the requested permission, with an explanation if the name is unclear. */
  title: string
  /** Name of the subagent that made the request. */
  subagent?: string
  /** The text to show first: the whole command, or the patterns and paths. */
  subject: string[]
  /** The requested file changes, as a unified diff. */
  diff?: string
  /** Further information, such as the rule that asks. Texts can have several lines. */
  details: { name: string; text: string }[]
  /** Whether the request contains characters that the user cannot see. If so, warn the user. */
  hasInvisibleCharacters: boolean
  /** Rules that the reply "always" adds. Empty if "always" is not offered. */
  rules: { permission: string; pattern: string }[]
  /** Reasons why "always" is not offered. */
  onlyOnce: string[]
}

/** Describes a request. Shows config files in the worktree with relative paths. */
export function createRequestCard(request: PermissionRequest, worktree: string): RequestCard {
  const { permission, patterns, metadata, tool } = request
  // The full command is clearer than the parts that need permission.
  const isCommand = permission === "bash" && typeof metadata.command === "string"
  const subject = isCommand ? [String(metadata.command)] : patterns
  const details = detailsOf(request, { subject, worktree })
  return {
    title: titleOf(permission),
    subagent: tool?.parent && showInvisible(tool.parent.agent),
    subject: subject.map((text) => showInvisible(text)),
    diff: typeof metadata.diff === "string" ? showInvisible(metadata.diff, { keepTabs: true }) : undefined,
    details: details.map(([name, text]) => ({ name, text: showInvisible(text) })),
    hasInvisibleCharacters: Boolean(metadata.invisibleCharacters),
    rules: [request, ...(request.also ?? [])].flatMap((part) =>
      part.always.map((pattern) => ({ permission: part.permission, pattern })),
    ),
    onlyOnce: Array.isArray(metadata.onlyOnce)
      ? metadata.onlyOnce.map((text) => showInvisible(String(text)))
      : [],
  }
}

/** Returns the permission's name in rules, followed by an explanation if the name alone is unclear. */
function titleOf(permission: string): string {
  const meaning = own(meanings, permission)
  return meaning === undefined ? permission : `${permission}: ${meaning}`
}
const meanings: Readonly<Record<string, string>> = {
  doom_loop: "the model repeats itself",
  external_directory: "use files outside this project",
  mcp_sampling: "let an MCP server send a request to the model",
  network: "connect to the internet",
  private_network: "connect to this machine or its private network",
  sandbox_escape: "run without the sandbox",
}
/** Explains why the requested call counts as a loop, or returns an empty string if the request is not about a loop. */
function repetition({ permission, metadata: { count, period } }: PermissionRequest): string {
  if (permission !== "doom_loop" || typeof count !== "number") return ""
  return typeof period === "number" && period > 1
    ? `the model has requested the same ${period} calls ${count} times in a row`
    : `the model has requested this call ${count} times in a row`
}

/** Describes the rules, or the default, that caused the request. */
function decision({ metadata }: PermissionRequest, worktree: string): string {
  const rules = Array.isArray(metadata.decidedBy) ? metadata.decidedBy.filter(isRecord) : []
  const sentences = rules.map(({ permission, pattern, action, source, line }) => {
    if (source === "defaults" && pattern === "*") return "no rule allows it, and the default is to ask"
    const file = String(source).startsWith("/") ? displayPath(String(source), worktree) : String(source)
    const where = source === "defaults" ? "a default" : `${file}${typeof line === "number" ? `:${line}` : ""}`
    if (source === "a plugin") return "a plugin asks"
    const rule = `"${String(permission)}: ${String(pattern)}"`
    return action === "deny"
      ? `${where} denies ${rule}, which could match this request`
      : `${where} asks for ${rule}`
  })
  return [...new Set(sentences)].join("\n")
}

/**
 * Returns named details that help the user decide. Omits details that are empty, that repeat the request's subject, or
 * that are the worktree.
 */
function detailsOf(
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
  return all.filter(([, text]) => text !== "" && text !== worktree)
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

function words(value: unknown): string {
  if (Array.isArray(value)) return value.map(words).join(", ")
  return typeof value === "string" ? value : JSON.stringify(value)
}
