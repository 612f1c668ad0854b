import { throwIfAborted } from "../util/abort.ts"
import { TackleError } from "../util/errors.ts"
import { displayPath, resolvePath } from "../util/paths.ts"
import { writeAtomic } from "./atomic-write.ts"
import type { FileStamp, FileTracker } from "./file-tracker.ts"
import { type FormatContext, type Formatting, formatFile, formatReport, recordChange } from "./format-file.ts"
import {
  accessError,
  assertSeen,
  assertUnchanged,
  bytesOf,
  decodeBefore,
  type FileBefore,
  readBefore,
  resolveTarget,
} from "./freshness.ts"
import { pinnedPatterns } from "./open-file.ts"
import { showName } from "./show-name.ts"
import { encodeText, plainText, type TextFormat } from "./text-encoding.ts"
import { isWholeDiff, unifiedDiff } from "./unified-diff.ts"

/** The tool context that {@link changeFile} needs. */
export interface ChangeContext extends FormatContext {
  /** Directory against which relative paths are resolved. */
  directory: string
  /** Absolute path of the worktree. Paths inside it are displayed relative to it. */
  worktree: string
  files: FileTracker
  ask(request: {
    permission: "edit"
    patterns: string[]
    always: string[]
    metadata: Record<string, unknown>
  }): Promise<void>
}

/** The planned content of a file, and the diff that the user sees. */
export interface FileChange {
  bytes: Uint8Array
  diff: string
}

/** A completed change. */
export interface ChangedFile<C extends FileChange> {
  change: C
  /** Path relative to the worktree if the file is inside it. */
  title: string
  /** Formatter report for the model. Usually empty. */
  formatting: string
  metadata: {
    filePath: string
    /** Whether the file existed before the change. */
    exists: boolean
    diff: string
    formatted?: Formatting
    /** Why formatting failed. Absent if it did not fail. */
    notFormatted?: string
    /** State of the written file, for the file tracker of a resumed session. */
    file: { path: string; stamp: FileStamp }
  }
}

/**
 * Changes one file: reads it, plans the change, asks for permission, checks that the file is unchanged, writes it,
 * formats it and records its stamp. Holds the file's lock throughout. Refuses to change an existing file that the
 * session has not read, or that has changed since, even during the permission request. Throws `FileChangeError` if the
 * file must not be changed, `MovedPathError` if the path now leads elsewhere, `FileAccessError` for other system
 * errors, the signal's reason after an abort, and errors from `plan`, `ctx.ask` and `ctx.changes`.
 */
export async function changeFile<C extends FileChange>(
  ctx: ChangeContext,
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
    const shown = { filePath: path, exists: before.exists, diff: change.diff }
    // Offers "always" only if the request shows the user the whole change.
    const always = isWholeDiff(change.diff) ? ["*"] : []
    await ctx.ask({ permission: "edit", patterns: pinnedPatterns(path, real), always, metadata: shown })
    throwIfAborted(ctx.abort)
    const { bytes } = change
    const states = { before: [{ path: real, bytes: bytesOf(before) }], after: [{ path: real, bytes }] }
    const written = await ctx.files.commit([real], async () => {
      await assertUnchanged(before)
      const stamp = await recordChange(ctx, states, () => write(before, bytes, ctx.files))
      return formatFile(ctx, { path, real, title, bytes, stamp })
    })
    const { stamp, formatted, problem } = written
    ctx.files.record(real, stamp)
    return {
      change,
      title,
      formatting: formatReport(title, written),
      metadata: { ...shown, formatted, notFormatted: problem, file: { path: real, stamp } },
    }
  })
}

async function write(
  before: FileBefore,
  bytes: Uint8Array,
  { trackTemporary }: FileTracker,
): Promise<FileStamp> {
  try {
    return await writeAtomic(before.real, bytes, trackTemporary, () => assertUnchanged(before))
  } catch (error) {
    throw TackleError.isInstance(error) ? error : accessError("write", before.path, error)
  }
}

/**
 * Plans the replacement of a file's whole content. An existing file keeps its encoding and byte order mark. Throws
 * `FileChangeError` if the existing file is binary or has an unknown encoding.
 */
export async function planWrite(before: FileBefore, title: string, content: string): Promise<FileChange> {
  const old = before.exists ? decodeBefore(before, title, otherEncoding) : undefined
  const format = old?.format ?? plainText
  const bytes = encodeText(withoutSecondMark(content, format), format)
  return { bytes, diff: await unifiedDiff({ path: title, before: old?.text, after: content }) }
}

const otherEncoding =
  "To change it, use a command that supports its encoding, such as iconv. To replace it with UTF-8 text, delete it first."

function withoutSecondMark(content: string, format: TextFormat): string {
  return format.bom && content.startsWith("\ufeff") ? content.slice(1) : content
}
