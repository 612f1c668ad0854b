import { statSync } from "node:fs"
import { shownName } from "../../config/shown-name.ts"
import type { Tackle } from "../../engine/tackle.ts"
import type { PromptFile } from "../../schema/input.ts"
import {
  type Attached,
  attachedByUser,
  attachedFiles,
  callFor,
  type MissingMention,
  missingMentions,
} from "../../session/mentions.ts"
import { UsageError } from "../../util/errors.ts"
import { resolvePath } from "../../util/paths.ts"
import { warn } from "../process/notice.ts"

/**
 * Returns the content of the files passed with `--file`. A file is read with `read` and a directory with `list`, within
 * the limits of these tools. By passing a file, the user allows Tackle to read it, but a rule can still deny the read.
 * Throws `UsageError` for a file that cannot be attached.
 */
export async function attachFiles(
  tackle: Tackle,
  paths: readonly string[],
  signal: AbortSignal,
): Promise<PromptFile[]> {
  const stop = tackle.on("permission.asked", (request) => void request.reply("once"))
  try {
    const attached: PromptFile[] = []
    for (const path of paths) attached.push(...(await attach(tackle, path, signal)))
    return attached
  } finally {
    stop()
  }
}

async function attach(tackle: Tackle, given: string, signal: AbortSignal): Promise<PromptFile[]> {
  const path = resolvePath(given, tackle.directory)
  const isDirectory = statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false
  const file: Attached = { kind: isDirectory ? "directory" : "file", name: given, path }
  const { tool, input } = callFor(file)
  const { state } = await tackle.callTool({
    tool,
    input: JSON.stringify(input),
    extra: attachedByUser,
    signal,
  })
  const shown = attachedFiles(file, state)
  if ("files" in shown) return shown.files
  throw new UsageError(`Cannot attach ${given}: ${shown.problem}`)
}

/** Maximum number of missing mentions that are reported per prompt. Pasted text may contain many `@` characters. */
const maxReported = 5

/**
 * Reports `@path` mentions in the prompt that do not match a file in the project. Nothing is attached for these
 * mentions.
 */
export async function reportMissingMentions(
  prompt: string,
  { directory, worktree, agents }: Tackle,
  signal: AbortSignal,
): Promise<void> {
  if (!prompt.includes("@")) return
  const workspace = { directory, worktree, agents: [...agents.keys()], servers: [] }
  const missing = await missingMentions(prompt, workspace, signal)
  for (const mention of missing.slice(0, maxReported)) warn(describe(mention))
}

function describe({ name, outside, near }: MissingMention): string {
  const word = `@${shownName(name)}`
  if (outside)
    return `${word} is outside this project and is not attached. To attach it, use --file ${shownName(name)}`
  const hint =
    near.length > 0 ? ` Did you mean ${near.map((path) => `@${shownName(path)}`).join(" or ")}?` : ""
  return `${word} does not match a file, so nothing is attached.${hint}`
}
