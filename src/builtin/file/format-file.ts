import type { ToolContext } from "../../tool/context.ts"
import type { FileStamp } from "../../tool/ledger.ts"
import { errorMessage } from "../../util/errors.ts"
import { writeAtomic } from "./atomic-write.ts"
import { type FileBefore, readBefore } from "./freshness.ts"
import { keepingFiles } from "./keeping-files.ts"
import { decodeText } from "./text-encoding.ts"
import { unifiedDiff } from "./unified-diff.ts"

/** A file that was just written, under its lock and within its commit. */
export interface WrittenFile {
  /** As the tool was asked for it. */
  path: string
  /** Links followed. */
  real: string
  title: string
  bytes: Uint8Array
  stamp: FileStamp
}

/** Who changed a text after it was written, and how. */
export interface Formatting {
  by: string[]
  diff: string
}

/** What became of it. Without `formatted` and `problem` no formatter had anything to do. */
export interface FormattedFile {
  stamp: FileStamp
  bytes: Uint8Array
  formatted?: Formatting
  /** Why it was not formatted: one line. */
  problem?: string
  /** True where it could not be put back as it was written: what is there now is for the session to read. */
  unsure?: true
}

type FormatContext = Pick<ToolContext, "formatter" | "changes" | "files" | "abort">

/**
 * Lets the configured formatters at a file that was written. What they make of it is kept for the turn's undo, and its
 * stamp is what the next edit is held to. Where one fails, or what it made cannot be kept, the file is put back as it was
 * written; where none ran it is not touched, whoever has saved it meanwhile. Never rejects: the change that was asked for
 * is made.
 */
export async function formatFile(ctx: FormatContext, file: WrittenFile): Promise<FormattedFile> {
  const { stamp, bytes } = file
  if (!ctx.formatter?.handles(file.real)) return { stamp, bytes }
  const runs = await ctx.formatter.format(file.real, ctx.abort)
  const failed = runs.find((run) => run.problem !== undefined)
  const problem = failed && `${failed.name}: ${failed.problem}`
  if (problem !== undefined && !runs.some(({ ran }) => ran)) return { stamp, bytes, problem }
  try {
    const now = await readBefore(file.path, file.real)
    if (problem !== undefined) return await putBack(ctx, { file, now, problem })
    if (!now.exists) return await putBack(ctx, { file, now, problem: "the file was gone after formatting" })
    if (isSame(now.bytes, bytes)) return { stamp: now.stamp, bytes }
    return await keepFormatted(ctx, { file, now, by: runs.map(({ name }) => name) })
  } catch (error) {
    const found = [problem, errorMessage(error)].filter((text) => text !== undefined).join("; ")
    return { stamp, bytes, problem: found, unsure: true }
  }
}

/** The model sees of a formatter's changes at most so many characters. */
const maxShown = 2_000

/** What the model is told of it, to be put after the report of the change: empty where there is nothing to say. */
export function formatReport(title: string, { formatted, problem, unsure }: FormattedFile): string {
  if (unsure)
    return `\n${title} may be neither as it was written nor formatted (${problem?.split("\n")[0]}). Read it before you change it again.`
  if (problem !== undefined)
    return `\n${title} was not formatted (${problem.split("\n")[0]}); the change itself is made.`
  if (!formatted) return ""
  const { by, diff } = formatted
  const shown =
    diff.length <= maxShown ? diff : `${diff.slice(0, diff.lastIndexOf("\n", maxShown) + 1)}[cut here]\n`
  return `\n${by.join(" and ")} then formatted ${title}, which now has:\n${shown.trimEnd()}`
}

type FileNow = FileBefore & { exists: true }

async function keepFormatted(
  ctx: FormatContext,
  { file, now, by }: { file: WrittenFile; now: FileNow; by: string[] },
): Promise<FormattedFile> {
  try {
    const diff = await diffOf(file.title, file.bytes, now.bytes)
    await keepingFiles(ctx, step(file.real, file.bytes, now.bytes), async () => {})
    return { stamp: now.stamp, bytes: now.bytes, formatted: { by, diff } }
  } catch (error) {
    // Nothing more can be kept, and what is there is what programs made that say they succeeded.
    const stamp = await writeAtomic(file.real, file.bytes, ctx.files.note)
    return { stamp, bytes: file.bytes, problem: errorMessage(error) }
  }
}

/** What is there may also be what a person saved while the formatter ran: it is kept before it goes. */
async function putBack(
  ctx: FormatContext,
  { file, now, problem }: { file: WrittenFile; now: FileBefore; problem: string },
): Promise<FormattedFile> {
  const { real, bytes } = file
  if (now.exists && isSame(now.bytes, bytes)) return { stamp: now.stamp, bytes, problem }
  const write = () => writeAtomic(real, bytes, ctx.files.note)
  if (!now.exists) return { stamp: await write(), bytes, problem }
  // In two steps, each of which begins with what the last one left: else the turn could not be undone.
  await keepingFiles(ctx, step(real, bytes, now.bytes), async () => {})
  return { stamp: await keepingFiles(ctx, step(real, now.bytes, bytes), write), bytes, problem }
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
