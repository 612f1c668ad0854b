import { lstat } from "node:fs/promises"
import type { FileStep } from "../../files/commit-files.ts"
import { type FileStamp, type FileTracker, sameStamp } from "../../files/file-tracker.ts"
import {
  accessError,
  assertSeen,
  decodeBefore,
  type FileBefore,
  FileChangeError,
} from "../../files/freshness.ts"
import { decodeText, encodeText, plainText } from "../../files/text-encoding.ts"
import { unifiedDiff } from "../../files/unified-diff.ts"
import { systemCode } from "../../util/errors.ts"
import { counted } from "../../util/words.ts"
import { applyHunks, type PatchedText } from "./patch-apply.ts"
import type { PatchHunk, PatchSection } from "./patch-parse.ts"

/** A file in a patch, and its display path. */
export interface PatchFile {
  before: FileBefore
  title: string
}

/** A section whose files have been locked and read. `target` is the destination of a move. */
export interface OpenSection {
  section: PatchSection
  file: PatchFile
  target?: PatchFile
}

/** The planned changes of a section. */
export interface PlannedSection extends OpenSection {
  steps: FileStep[]
  diff: string
  /** The strategy and line of each hunk. */
  hunks: PatchedText["hunks"]
  /** Whether the session knows the whole content of the new file. */
  known: boolean
}

/**
 * Plans one section without changing anything. If the session has not read a file's current content, the file cannot be
 * deleted. It can be changed only if all context and removed lines match exactly, which proves that the model has seen
 * these lines, and it can be moved only if the section has no hunks. Throws `FileChangeError` if the file must not be
 * changed, and `PatchMismatchError` if a hunk cannot be applied.
 */
export async function planSection(open: OpenSection, files: FileTracker): Promise<PlannedSection> {
  switch (open.section.kind) {
    case "add":
      return planAdd(open, open.section.lines)
    case "delete":
      return planDelete(open, files)
    case "update":
      return planUpdate(open, open.section.hunks, files)
  }
}

async function planAdd(open: OpenSection, lines: readonly string[]): Promise<PlannedSection> {
  const { before, title } = open.file
  assertAbsent(open.file)
  const text = lines.map((line) => `${line}\n`).join("")
  const step = { path: before.real, exists: false, bytes: encodeText(text, plainText) }
  const diff = await unifiedDiff({ path: title, before: undefined, after: text })
  return { ...open, steps: [step], diff, hunks: [], known: true }
}

async function planDelete(open: OpenSection, files: FileTracker): Promise<PlannedSection> {
  const before = existing(open.file, "remove the section")
  await assertNoLink(before.path, open.file.title)
  assertSeen(before, files)
  const decoded = decodeText(before.bytes)
  const diff =
    decoded.kind === "text"
      ? await unifiedDiff({ path: open.file.title, before: decoded.text, after: undefined })
      : `[${open.file.title} is not text; deleted ${counted(before.bytes.length, "byte")}]\n`
  const step = { path: before.real, exists: true, bytes: undefined }
  return { ...open, steps: [step], diff, hunks: [], known: false }
}

async function planUpdate(
  open: OpenSection,
  hunks: readonly PatchHunk[],
  files: FileTracker,
): Promise<PlannedSection> {
  const { title } = open.file
  const before = existing(open.file, 'create the file with "*** Add File: "')
  const known = isKnown(before, files.seen(before.real))
  const patched =
    hunks.length === 0 ? { bytes: before.bytes, diff: "", hunks: [] } : await patch(before, hunks, title)
  if (patched.hunks.some(({ strategy }) => strategy !== "exact")) assertSeen(before, files)
  if (!open.target) {
    const step = { path: before.real, exists: true, bytes: patched.bytes }
    return { ...open, steps: [step], diff: patched.diff, hunks: patched.hunks, known }
  }
  assertAbsent(open.target)
  await assertNoLink(before.path, title)
  const steps: FileStep[] = [
    { path: open.target.before.real, exists: false, bytes: patched.bytes, like: before.real },
    { path: before.real, exists: true, bytes: undefined },
  ]
  const diff = `rename from ${title}\nrename to ${open.target.title}\n${patched.diff}`
  return { ...open, steps, diff, hunks: patched.hunks, known }
}

async function patch(before: ExistingFile, hunks: readonly PatchHunk[], title: string) {
  const decoded = decodeBefore(before, title, "Change it with a command that supports its format.")
  const after = applyHunks(decoded.text, hunks, title)
  const diff = await unifiedDiff({ path: title, before: decoded.text, after: after.text })
  return { bytes: encodeText(after.text, decoded.format), diff, hunks: after.hunks }
}

type ExistingFile = Extract<FileBefore, { exists: true }>

function existing({ before, title }: PatchFile, otherwise: string): ExistingFile {
  if (before.exists) return before
  throw new FileChangeError(
    "missing",
    `${title} does not exist. Nothing was changed. Find the right path with glob, or ${otherwise}.`,
  )
}

function assertAbsent({ before, title }: PatchFile): void {
  if (!before.exists) return
  throw new FileChangeError(
    "exists",
    `${title} already exists. Nothing was changed. Change it with "*** Update File: ", or choose another path.`,
  )
}

function isKnown(before: ExistingFile, seen: FileStamp | undefined): boolean {
  return seen !== undefined && sameStamp(seen, before.stamp)
}

/**
 * Throws `FileChangeError` for a symlink, because deleting the path would remove the link, not the file that was read.
 */
async function assertNoLink(path: string, title: string): Promise<void> {
  if (!(await isLink(path))) return
  throw new FileChangeError(
    "unfit",
    `${title} is a link. Nothing was changed. To delete or move the file, use the path of the link's target. To delete or move the link, use bash.`,
  )
}

async function isLink(path: string): Promise<boolean> {
  try {
    return (await lstat(path)).isSymbolicLink()
  } catch (error) {
    if (systemCode(error) === "ENOENT") return false
    throw accessError("read", path, error)
  }
}
