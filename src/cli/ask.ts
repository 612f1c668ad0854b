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
  process.stderr.write(`${describeRequest(request)}\n`)
  const remembered = request.always.map((pattern) => `${request.permission}: ${visible(pattern)}`).join(", ")
  const always =
    request.always.length === 0
      ? []
      : [
          { value: "session" as const, label: "always, in this session", hint: `allows ${remembered}` },
          {
            value: "project" as const,
            label: "always, in this project",
            hint: `allows ${remembered} in ${worktree}`,
          },
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
export function describeRequest({ permission, patterns, metadata }: PermissionRequest): string {
  const lines = [style.bold(`? ${permission}`)]
  for (const pattern of patterns)
    lines.push(
      ...visible(pattern)
        .split("\n")
        .map((line) => `    ${line}`),
    )
  for (const [name, value] of Object.entries(metadata)) {
    if (name === "diff" && typeof value === "string") lines.push(...diffLines(value))
    else if (noted.has(name)) lines.push(style.dim(`  ${name}: ${visible(words(value))}`))
  }
  if (metadata.invisibleCharacters)
    lines.push(style.yellow("  It holds characters that cannot be seen; they are shown as <…>."))
  return lines.join("\n")
}

const noted: ReadonlySet<string> = new Set([
  "description",
  "workdir",
  "resolved",
  "reasons",
  "protected",
  "count",
])

function words(value: unknown): string {
  if (Array.isArray(value)) return value.map(words).join(", ")
  return typeof value === "string" ? value : JSON.stringify(value)
}

function diffLines(diff: string): string[] {
  const lines = diff.split("\n")
  const shown = lines.slice(0, maxDiffLines).map((line) => {
    const text = `  ${visible(line)}`
    if (line.startsWith("+")) return style.green(text)
    return line.startsWith("-") ? style.red(text) : style.dim(text)
  })
  return lines.length > maxDiffLines
    ? [...shown, style.dim(`  … ${lines.length - maxDiffLines} more lines`)]
    : shown
}
