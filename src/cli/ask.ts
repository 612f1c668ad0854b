import { select, text } from "@clack/prompts"
import type { PermissionReply, PermissionRequest } from "../schema/permission.ts"
import { question } from "./question.ts"
import { style } from "./view/style.ts"
import { visible } from "./view/visible.ts"

/** Lines of a diff that are shown before it is cut. */
const maxDiffLines = 60

/** Asks the person at the terminal. Escape is a refusal; Ctrl-C, or the signal, throws `AbortedError`. */
export async function askAtTerminal(
  request: PermissionRequest,
  { worktree, signal }: { worktree: string; signal: AbortSignal },
): Promise<PermissionReply> {
  process.stderr.write(`${describeRequest(request, worktree)}\n`)
  const always =
    request.always.length === 0
      ? []
      : [
          { value: "session" as const, label: "always, in this session" },
          { value: "project" as const, label: "always, in this project", hint: worktree },
        ]
  const choose = (stop: AbortSignal) =>
    select({
      message: "Allow this?",
      output: process.stderr,
      signal: stop,
      options: [
        { value: "once" as const, label: "yes, once" },
        ...always,
        { value: "reject" as const, label: "no" },
        { value: "feedback" as const, label: "no, and say why" },
      ],
    })
  const choice = await question(choose, signal)
  if (choice === undefined) return { reply: "reject" }
  if (choice === "once" || choice === "reject") return { reply: choice }
  if (choice === "session" || choice === "project") return { reply: "always", scope: choice }
  const write = (stop: AbortSignal) =>
    text({
      message: "What should it do instead?",
      output: process.stderr,
      signal: stop,
    })
  const message = await question(write, signal)
  return message ? { reply: "reject", message } : { reply: "reject" }
}

/** What is asked for, whole and with every hidden character made visible. */
export function describeRequest(request: PermissionRequest, worktree: string): string {
  const { permission, patterns, always, metadata, tool } = request
  const command = typeof metadata.command === "string" ? metadata.command : undefined
  // The command as it was written says more than the parts of it that need leave.
  const subject = permission === "bash" && command !== undefined ? [command] : patterns
  const asker = tool?.parent ? style.dim(` (the subagent ${visible(tool.parent.agent)} asks)`) : ""
  const lines = [style.bold(`? ${permission}`) + asker, ...subject.flatMap((text) => indented(text, "    "))]
  if (typeof metadata.diff === "string") lines.push(...diffLines(metadata.diff))
  for (const [name, value] of details(request, subject)) {
    if (value === worktree) continue
    const [first = "", ...more] = indented(value, "    ")
    lines.push(...[`  ${name}: ${first.trimStart()}`, ...more].map(style.dim))
  }
  if (metadata.invisibleCharacters)
    lines.push(style.yellow("  It holds characters that cannot be seen; they are shown as <…>."))
  if (always.length > 0) {
    const rules = always.map((pattern) => `${permission}: ${visible(pattern)}`)
    lines.push(style.dim(`  always would allow ${rules.join(", ")}`))
  }
  return lines.join("\n")
}

/** What helps to decide beside the subject, with its name. What would only repeat the subject is left out. */
function details(
  { patterns, metadata }: PermissionRequest,
  subject: readonly string[],
): [name: string, text: string][] {
  const repeated = (text: string) => subject.some((part) => text === part || text.endsWith(`/${part}`))
  const parts = patterns.filter((pattern) => !repeated(pattern)).join("\n")
  const named = Object.entries(metadata).filter(([name]) => noted.has(name))
  return [
    ["asks for", parts],
    ...named.map(([name, value]): [string, string] => [name, words(value)]),
  ].filter((entry): entry is [string, string] => entry[1] !== "" && !repeated(String(entry[1])))
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
  "count",
])

function indented(text: string, indent: string): string[] {
  return visible(text)
    .split("\n")
    .map((line) => indent + line)
}

function words(value: unknown): string {
  if (Array.isArray(value)) return value.map(words).join(", ")
  return typeof value === "string" ? value : JSON.stringify(value)
}

/** Without the head that names the file: the question has named it. */
function diffLines(diff: string): string[] {
  const lines = diff
    .trimEnd()
    .split("\n")
    .filter((line) => !/^(Index: |={20,}$)/.test(line))
  const shown = lines.slice(0, maxDiffLines).map((line) => {
    const text = `  ${visible(line)}`
    if (line.startsWith("+")) return style.green(text)
    return line.startsWith("-") ? style.red(text) : style.dim(text)
  })
  return lines.length > maxDiffLines
    ? [...shown, style.dim(`  … ${lines.length - maxDiffLines} more lines`)]
    : shown
}
