import { writeAtomic } from "../../files/atomic-write.ts"
import type { FileStamp } from "../../files/file-tracker.ts"
import { type FileBefore, readBefore } from "../../files/freshness.ts"
import { decodeText } from "../../files/text-encoding.ts"
import { unifiedDiff } from "../../files/unified-diff.ts"
import type { ToolContext } from "../../tool/context.ts"
import { errorMessage } from "../../util/errors.ts"
import { keepingFiles } from "./keeping-files.ts"

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
  /** What those made that succeeded, also where one after them failed. */
  formatted?: Formatting
  /** Why it was not formatted, or not to the end: one line. */
  problem?: string
  /** True where it could not be put back as it was written: what is there now is for the session to read. */
  unsure?: true
}

type FormatContext = Pick<ToolContext, "formatter" | "changes" | "files" | "abort">

/**
 * Lets the configured formatters at a file that was written. What they make of it is kept for the turn's undo, and its
 * stamp is what the next edit is held to. Where one fails, or what it made cannot be kept, the file is put back as the
 * last that succeeded left it, or as it was written; where none ran it is not touched, whoever has saved it meanwhile.
 * Never rejects: the change that was asked for is made.
 */
export async function formatFile(ctx: FormatContext, file: WrittenFile): Promise<FormattedFile> {
  const { stamp, bytes } = file
  if (!ctx.formatter?.handles(file.real)) return { stamp, bytes }
  const made: Made = { by: [], bytes, ran: false }
  try {
    for await (const { name, ran, problem } of ctx.formatter.format(file.real, ctx.abort)) {
      made.ran ||= ran
      if (problem !== undefined) made.problem = `${name}: ${problem}`
      else await noteMade(file, made, name)
      if (made.problem !== undefined) break
    }
    const { problem } = made
    if (!made.ran) return { stamp, bytes, ...(problem === undefined ? {} : { problem }) }
    return await keepMade(ctx, file, made)
  } catch (error) {
    const found = [made.problem, errorMessage(error)].filter((text) => text !== undefined).join("; ")
    return { stamp, bytes, problem: found, unsure: true }
  }
}

/** What formatters made so far. */
interface Made {
  /** Those that succeeded. */
  by: string[]
  /** The file as the last of them left it. */
  bytes: Uint8Array
  /** True once a process of any was there. */
  ran: boolean
  problem?: string
}

async function noteMade(file: WrittenFile, made: Made, name: string): Promise<void> {
  const now = await readBefore(file.path, file.real)
  if (!now.exists) {
    made.problem = "the file was gone after formatting"
    return
  }
  made.by.push(name)
  made.bytes = now.bytes
}

/** The model sees of a formatter's changes at most so many characters. */
const maxShown = 2_000

/** What the model is told of it, to be put after the report of the change: empty where there is nothing to say. */
export function formatReport(title: string, { formatted, problem, unsure }: FormattedFile): string {
  if (unsure)
    return `\n${title} may be neither as it was written nor formatted (${problem?.split("\n")[0]}). Read it before you change it again.`
  const failure = problem?.split("\n")[0]
  if (!formatted)
    return failure === undefined
      ? ""
      : `\n${title} was not formatted (${failure}); the change itself is made.`
  const { by, diff } = formatted
  const shown =
    diff.length <= maxShown ? diff : `${diff.slice(0, diff.lastIndexOf("\n", maxShown) + 1)}[cut here]\n`
  const last =
    failure === undefined
      ? ""
      : `\nA formatter after that did not do its work, and nothing of it is left (${failure}).`
  return `\n${by.join(" and ")} then formatted ${title}, which now has:\n${shown.trimEnd()}${last}`
}

/** The file as the last that succeeded left it: it is made so where one after it left it otherwise. */
async function keepMade(ctx: FormatContext, file: WrittenFile, made: Made): Promise<FormattedFile> {
  const { real, bytes } = file
  const now = await readBefore(file.path, real)
  const problem = made.problem === undefined ? {} : { problem: made.problem }
  try {
    const stamp = await putBack(ctx, { file, now, wanted: made.bytes })
    if (isSame(made.bytes, bytes)) return { stamp, bytes, ...problem }
    const diff = await diffOf(file.title, bytes, made.bytes)
    return { stamp, bytes: made.bytes, formatted: { by: made.by, diff }, ...problem }
  } catch (error) {
    if (made.problem !== undefined || !now.exists) throw error
    // Nothing more can be kept, and what is there is what programs made that say they succeeded.
    const stamp = await writeAtomic(real, bytes, ctx.files.note)
    return { stamp, bytes, problem: errorMessage(error) }
  }
}

/**
 * Makes the file what is wanted, if it is not. What is there may also be what a person saved while a formatter ran: it is
 * kept before it goes.
 */
async function putBack(
  ctx: FormatContext,
  { file, now, wanted }: { file: WrittenFile; now: FileBefore; wanted: Uint8Array },
): Promise<FileStamp> {
  const { real, bytes } = file
  // In steps each of which begins with what the last one left: else the turn could not be undone.
  const there = now.exists ? now.bytes : bytes
  if (!isSame(bytes, there)) await keepingFiles(ctx, step(real, bytes, there), async () => {})
  if (now.exists && isSame(there, wanted)) return now.stamp
  const write = () => writeAtomic(real, wanted, ctx.files.note)
  return isSame(there, wanted) ? write() : keepingFiles(ctx, step(real, there, wanted), write)
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
