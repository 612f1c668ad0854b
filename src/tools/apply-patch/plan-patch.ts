import { lstat } from "node:fs/promises"
import type { FileStep } from "../../files/commit-files.ts"
import { type FileStamp, type FileTracker, sameStamp } from "../../files/file-tracker.ts"
import { accessError, assertSeen, type FileBefore, FileChangeError } from "../../files/freshness.ts"
import { decodeText, encodeText, plainText } from "../../files/text-encoding.ts"
import { unifiedDiff } from "../../files/unified-diff.ts"
import { systemCode } from "../../util/errors.ts"
import { applyHunks, type PatchedText } from "./patch-apply.ts"
import type { PatchHunk, PatchSection } from "./patch-parse.ts"

/** A file that a patch names: as it is, and how it is shown. */
export interface PatchFile {
  before: FileBefore
  title: string
}

/** A section of the patch with its files, locked and read. `target` is where it moves the file to. */
export interface OpenSection {
  section: PatchSection
  file: PatchFile
  target?: PatchFile
}

/** What a section is going to do. */
export interface PlannedSection extends OpenSection {
  steps: FileStep[]
  diff: string
  /** How the hunks were found. */
  hunks: PatchedText["hunks"]
  /** True if the session knows every byte of the new file, so that it may go on changing it. */
  known: boolean
}

/**
 * Works out one section without touching anything. A file that the session has not read as it is now may be deleted by
 * no patch, and changed by one only whose context and removed lines stand in it exactly: they prove that the author has
 * seen them. A move alone changes no content and needs no such proof. Throws `FileChangeError`, `PatchMismatchError`.
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
  const before = existing(open.file)
  await assertNoLink(before.path, open.file.title)
  assertSeen(before, files)
  const decoded = decodeText(before.bytes)
  const diff =
    decoded.kind === "text"
      ? await unifiedDiff({ path: open.file.title, before: decoded.text, after: undefined })
      : `[${open.file.title} is no text: ${before.bytes.length} bytes go]\n`
  const step = { path: before.real, exists: true, bytes: undefined }
  return { ...open, steps: [step], diff, hunks: [], known: false }
}

async function planUpdate(
  open: OpenSection,
  hunks: readonly PatchHunk[],
  files: FileTracker,
): Promise<PlannedSection> {
  const { title } = open.file
  const before = existing(open.file)
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
  const decoded = decodeText(before.bytes)
  if (decoded.kind !== "text") {
    throw new FileChangeError(
      "unfit",
      `${title} is no text that can be written back as it is (UTF-8, or UTF-16 with its mark). Nothing was changed. Change it with a command that knows its format.`,
    )
  }
  const after = applyHunks(decoded.text, hunks, title)
  const diff = await unifiedDiff({ path: title, before: decoded.text, after: after.text })
  return { bytes: encodeText(after.text, decoded.format), diff, hunks: after.hunks }
}

type ExistingFile = Extract<FileBefore, { exists: true }>

function existing({ before, title }: PatchFile): ExistingFile {
  if (before.exists) return before
  throw new FileChangeError(
    "missing",
    `${title} does not exist. Nothing was changed. Find the right path with glob; a new file begins with "*** Add File: ".`,
  )
}

function assertAbsent({ before, title }: PatchFile): void {
  if (!before.exists) return
  throw new FileChangeError(
    "exists",
    `${title} exists already. Nothing was changed. Change it with "*** Update File: ", or choose another path.`,
  )
}

function isKnown(before: ExistingFile, seen: FileStamp | undefined): boolean {
  return seen !== undefined && sameStamp(seen, before.stamp)
}

/** What is taken away is the name that was given; behind a link that would be another than the file that was read. */
async function assertNoLink(path: string, title: string): Promise<void> {
  if (!(await isLink(path))) return
  throw new FileChangeError(
    "unfit",
    `${title} is a link. Nothing was changed. Name the file that it leads to, or use bash.`,
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
