import { writeAtomic } from "../../files/atomic-write.ts"
import type { FileStamp } from "../../files/file-tracker.ts"
import {
  assertSeen,
  assertUnchanged,
  bytesOf,
  type FileBefore,
  ioError,
  readBefore,
  resolveTarget,
} from "../../files/freshness.ts"
import { pinnedPatterns } from "../../files/pinned-patterns.ts"
import { showName } from "../../files/show-name.ts"
import type { NoteTemporary } from "../../files/temporary-files.ts"
import { isWholeDiff } from "../../files/unified-diff.ts"
import type { ToolContext } from "../../tool/context.ts"
import { throwIfAborted } from "../../util/abort.ts"
import { displayPath, resolvePath } from "../../util/paths.ts"
import { MovedPathError } from "../../util/pinned-path.ts"
import { type Formatting, formatFile, formatReport } from "./format-file.ts"
import { keepingFiles } from "./keeping-files.ts"

/** What a tool wants of a file: its new bytes, and the diff that the person sees. */
export interface FileChange {
  bytes: Uint8Array
  diff: string
}

/** A change that was made. */
export interface ChangedFile<C extends FileChange> {
  change: C
  /** Relative to the worktree where it lies inside. */
  title: string
  /** What the model is told of formatters, for the end of the report: mostly empty. */
  formatting: string
  metadata: {
    filePath: string
    /** False: it was created. */
    exists: boolean
    diff: string
    /** What a formatter made of it then. */
    formatted?: Formatting
    /** Why a formatter did not do its work. */
    notFormatted?: string
    /** For the ledger of a session that is continued. */
    file: { path: string; stamp: FileStamp }
  }
}

/**
 * The one way in which a tool changes a file: look, plan, ask, look again, write, format, remember. The file's lock is held
 * throughout, so that no other change comes between. Refuses files that the session has not read or that changed
 * since, also while the person was asked. Throws `FileChangeError`, `FileAccessError`, what `plan` throws, and
 * the refusal of `ctx.ask`.
 */
export async function changeFile<C extends FileChange>(
  ctx: ToolContext,
  filePath: string,
  plan: (before: FileBefore, title: string) => Promise<C>,
): Promise<ChangedFile<C>> {
  const path = resolvePath(filePath, ctx.directory)
  const title = showName(displayPath(path, ctx.worktree))
  const real = resolveTarget(path)
  return ctx.files.lock([real], async () => {
    throwIfAborted(ctx.abort)
    const before = await readBefore(path, real)
    assertSeen(before, ctx.files)
    const change = await plan(before, title)
    const about = { filePath: path, exists: before.exists, diff: change.diff }
    // Nobody should say "always" to what they could not see whole.
    const always = isWholeDiff(change.diff) ? ["*"] : []
    await ctx.ask({ permission: "edit", patterns: pinnedPatterns(path, real), always, metadata: about })
    throwIfAborted(ctx.abort)
    const { bytes } = change
    const known = { before: [{ path: real, bytes: bytesOf(before) }], after: [{ path: real, bytes }] }
    const written = await ctx.files.commit([real], async () => {
      await assertUnchanged(before)
      const stamp = await keepingFiles(ctx, known, () => write(path, { real, bytes, note: ctx.files.note }))
      return formatFile(ctx, { path, real, title, bytes, stamp })
    })
    const { stamp, formatted, problem } = written
    ctx.files.record(real, stamp)
    return {
      change,
      title,
      formatting: formatReport(title, written),
      metadata: {
        ...about,
        ...(formatted ? { formatted } : {}),
        ...(problem === undefined ? {} : { notFormatted: problem }),
        file: { path: real, stamp },
      },
    }
  })
}

async function write(
  path: string,
  { real, bytes, note }: { real: string; bytes: Uint8Array; note: NoteTemporary },
): Promise<FileStamp> {
  try {
    return await writeAtomic(real, bytes, note)
  } catch (error) {
    throw error instanceof MovedPathError ? error : ioError("write", path, error)
  }
}
