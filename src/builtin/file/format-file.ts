import type { FileStamp, ToolContext } from "../../tool/context.ts"
import { errorMessage } from "../../util/errors.ts"
import { writeAtomic } from "./atomic-write.ts"
import { readBefore } from "./freshness.ts"
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
  /** Why it was left as it was written: one line. */
  problem?: string
}

/**
 * Lets the configured formatters at a file that was written. What they make of it is kept for the turn's undo, and its
 * stamp is what the next edit is held to. Where one fails the file is as it was written. Never rejects: the change that
 * was asked for is made.
 */
export async function formatFile(
  ctx: Pick<ToolContext, "formatter" | "changes" | "files" | "abort">,
  file: WrittenFile,
): Promise<FormattedFile> {
  const { stamp, bytes } = file
  if (!ctx.formatter?.handles(file.real)) return { stamp, bytes }
  try {
    const runs = await ctx.formatter.format(file.real, ctx.abort)
    const failed = runs.find((run) => run.problem !== undefined)
    const now = await readBefore(file.path, file.real)
    if (failed) {
      const kept =
        now.exists && isSame(now.bytes, bytes)
          ? now.stamp
          : await writeAtomic(file.real, bytes, ctx.files.note)
      return { stamp: kept, bytes, problem: `${failed.name}: ${failed.problem}` }
    }
    if (!now.exists) {
      return {
        stamp: await writeAtomic(file.real, bytes, ctx.files.note),
        bytes,
        problem: "the file was gone after formatting",
      }
    }
    if (isSame(now.bytes, bytes)) return { stamp: now.stamp, bytes }
    const change = {
      before: [{ path: file.real, bytes }],
      after: [{ path: file.real, bytes: now.bytes }],
    }
    await keepingFiles(ctx, change, async () => {})
    const diff = await diffOf(file.title, bytes, now.bytes)
    return { stamp: now.stamp, bytes: now.bytes, formatted: { by: runs.map(({ name }) => name), diff } }
  } catch (error) {
    return { stamp, bytes, problem: errorMessage(error) }
  }
}

/** The model sees of a formatter's changes at most so many characters. */
const maxShown = 2_000

/** What the model is told of it, to be put after the report of the change: empty where there is nothing to say. */
export function formatReport(title: string, { formatted, problem }: FormattedFile): string {
  if (problem !== undefined)
    return `\n${title} was not formatted (${problem.split("\n")[0]}); the change itself is made.`
  if (!formatted) return ""
  const { by, diff } = formatted
  const shown =
    diff.length <= maxShown ? diff : `${diff.slice(0, diff.lastIndexOf("\n", maxShown) + 1)}[cut here]\n`
  return `\n${by.join(" and ")} then formatted ${title}, which now has:\n${shown.trimEnd()}`
}

function isSame(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0
}

async function diffOf(title: string, before: Uint8Array, after: Uint8Array): Promise<string> {
  const [old, fresh] = [decodeText(before), decodeText(after)]
  if (old.kind !== "text" || fresh.kind !== "text") return ""
  return unifiedDiff({ path: title, before: old.text, after: fresh.text })
}
