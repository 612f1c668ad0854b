import type { FormatterService } from "../formatter/service.ts"
import { errorMessage } from "../util/errors.ts"
import { writeAtomic } from "./atomic-write.ts"
import type { FileStamp, FileTracker } from "./file-tracker.ts"
import { type FileBefore, readBefore } from "./freshness.ts"
import { decodeText } from "./text-encoding.ts"
import type { ChangeCapability, FileContent } from "./turn-changes.ts"
import { unifiedDiff } from "./unified-diff.ts"

/** The tool context that {@link formatFile} needs. */
export interface FormatContext {
  abort: AbortSignal
  files: Pick<FileTracker, "trackTemporary">
  changes?: ChangeCapability
  formatter?: FormatterService
}

/** A file that was just written. The caller holds the file's lock and runs inside the change's commit. */
export interface WrittenFile {
  /** Path as the tool received it. */
  path: string
  /** Absolute path with all links resolved. */
  real: string
  title: string
  bytes: Uint8Array
  stamp: FileStamp
}

/** Names of the formatters that ran without an error, and the diff of their changes. */
export interface Formatting {
  by: string[]
  diff: string
}

/** The result of formatting. If `formatted` and `problem` are absent, the formatters changed nothing. */
export interface FormattedFile {
  stamp: FileStamp
  bytes: Uint8Array
  /** Changes by the formatters that succeeded, even if a later formatter failed. */
  formatted?: Formatting
  /** Why formatting failed. */
  problem?: string
  /** Whether the content on disk is uncertain. If so, the session must read the file again. */
  unsure?: true
}

/**
 * Runs the configured formatters on a written file and records their changes for undo. If a formatter fails, restores
 * the output of the last formatter that succeeded, or the written bytes. If the change cannot be recorded, restores the
 * written bytes. If restoring fails, sets `unsure`. Does not touch the file if no formatter ran. Never rejects.
 */
export async function formatFile(ctx: FormatContext, file: WrittenFile): Promise<FormattedFile> {
  const { stamp, bytes } = file
  if (!ctx.formatter?.handles(file.real)) return { stamp, bytes }
  const made: Made = { by: [], bytes, ran: false }
  try {
    for await (const { name, ran, problem } of ctx.formatter.format(file.real, ctx.abort)) {
      made.ran ||= ran
      if (problem !== undefined) made.problem = `${name}: ${problem}`
      else await readOutput(file, made, name)
      if (made.problem !== undefined) break
    }
    if (!made.ran) return { stamp, bytes, problem: made.problem }
    return await keepOutput(ctx, file, made)
  } catch (error) {
    const found = [made.problem, errorMessage(error)].filter((text) => text !== undefined).join("; ")
    return { stamp, bytes, problem: found, unsure: true }
  }
}

/** Records a change to files for undo, and makes the change by calling `work`. Outside a turn, only calls `work`. */
export function recordChange<T>(
  { changes }: Pick<FormatContext, "changes">,
  change: { before: readonly FileContent[]; after: readonly FileContent[] },
  work: () => Promise<T>,
): Promise<T> {
  return changes ? changes.files(change, work) : work()
}

/** The results of the formatters that have run so far. */
interface Made {
  /** Names of the formatters that succeeded. */
  by: string[]
  /** Content of the file after the last successful formatter. */
  bytes: Uint8Array
  /** Whether any formatter started a process. */
  ran: boolean
  problem?: string
}

async function readOutput(file: WrittenFile, made: Made, name: string): Promise<void> {
  const now = await readBefore(file.path, file.real)
  if (!now.exists) {
    made.problem = "the file did not exist after formatting"
    return
  }
  made.by.push(name)
  made.bytes = now.bytes
}

/** Keeps the output of the last successful formatter. Restores that output if a later formatter changed the file. */
async function keepOutput(ctx: FormatContext, file: WrittenFile, made: Made): Promise<FormattedFile> {
  const { real, bytes } = file
  const { problem } = made
  const now = await readBefore(file.path, real)
  try {
    const stamp = await restore(ctx, { file, now, wanted: made.bytes })
    if (isSame(made.bytes, bytes)) return { stamp, bytes, problem }
    const diff = await diffOf(file.title, bytes, made.bytes)
    return { stamp, bytes: made.bytes, formatted: { by: made.by, diff }, problem }
  } catch (error) {
    if (problem !== undefined || !now.exists) throw error
    // The change cannot be recorded. Replacing the content on disk is safe, because it is the output of successful
    // formatters.
    const stamp = await writeAtomic(real, bytes, ctx.files.trackTemporary)
    return { stamp, bytes, problem: errorMessage(error) }
  }
}

/**
 * Writes the wanted content if the content of the file differs. Records the replaced content for undo, because the user
 * may have just saved it.
 */
async function restore(
  ctx: FormatContext,
  { file, now, wanted }: { file: WrittenFile; now: FileBefore; wanted: Uint8Array },
): Promise<FileStamp> {
  const { real, bytes } = file
  // Each recorded change must start from the result of the previous change. Otherwise, the turn cannot be undone.
  const there = now.exists ? now.bytes : bytes
  if (!isSame(bytes, there)) await recordChange(ctx, step(real, bytes, there), async () => {})
  if (now.exists && isSame(there, wanted)) return now.stamp
  const write = () => writeAtomic(real, wanted, ctx.files.trackTemporary)
  return isSame(there, wanted) ? write() : recordChange(ctx, step(real, there, wanted), write)
}

function step(path: string, before: Uint8Array, after: Uint8Array) {
  return { before: [{ path, bytes: before }], after: [{ path, bytes: after }] }
}

function isSame(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0
}

async function diffOf(title: string, before: Uint8Array, after: Uint8Array): Promise<string> {
  const [old, fresh] = [decodeText(before), decodeText(after)]
  if (old.kind !== "text" || fresh.kind !== "text") return ""
  return unifiedDiff({ path: title, before: old.text, after: fresh.text })
}

/** Maximum number of characters of a formatter's diff that the model reads. */
const maxShown = 2_000

/** Returns the formatter report for the model, or an empty string if there is nothing to report. */
export function formatReport(title: string, { formatted, problem, unsure }: FormattedFile): string {
  const failure = problem?.split("\n")[0]?.replace(/\.$/, "")
  if (unsure)
    return `\nFormatting ${title} failed (${failure}), and the content of the file is uncertain. Read the file before you change it again.`
  if (!formatted)
    return failure === undefined ? "" : `\n${title} was not formatted (${failure}). Your change was saved.`
  const { by, diff } = formatted
  const shown =
    diff.length <= maxShown ? diff : `${diff.slice(0, diff.lastIndexOf("\n", maxShown) + 1)}[cut here]\n`
  const last =
    failure === undefined ? "" : `\nA later formatter failed, and none of its changes were kept (${failure}).`
  return `\n${by.join(" and ")} then formatted ${title}:\n${shown.trimEnd()}${last}`
}
