import { chmod, lstat, readdir, readFile, readlink } from "node:fs/promises"
import { dirname, join } from "node:path"
import type { FileChange, FileVersion } from "../schema/part.ts"
import { type ContentStore, hashOf } from "../store/content-store.ts"
import { errorMessage, systemCode, TackleError } from "../util/errors.ts"
import { realPath } from "../util/paths.ts"
import { commitFiles, type FileStep, removeEmpty } from "./commit-files.ts"
import type { TrackTemporary } from "./temporary-files.ts"

/** A file that an undo or redo changed. */
export interface RestoredFile {
  path: string
  /** `removed`: the file no longer exists. */
  kind: "restored" | "removed"
}

/** A file that was not changed, and the reason. */
export interface RefusedFile {
  path: string
  /** `skipped` means that the user asked to skip all files of the turn. */
  why: "changed" | "mixed" | "too-large" | "unstored" | "not-kept" | "unreadable" | "skipped"
}

/** Thrown if some files cannot be restored. No file has been changed. */
export class UndoRefusedError extends TackleError {
  readonly refused: readonly RefusedFile[]
  /** The message without advice: the problem and the files. */
  readonly summary: string

  /** Number of turns to undo. If it is more than 1, `others` and `skip` cannot be used. */
  readonly turns: number

  /** `total` is the number of files in the turns, including refused files. */
  constructor(
    direction: Direction,
    refused: readonly RefusedFile[],
    { total, turns = 1 }: { total: number; turns?: number },
  ) {
    const lines = refused.map(({ path, why }) => `  ${path}: ${reasons[why]}`)
    const summary = `Cannot ${direction} the ${turnsText(turns)}, so no file was restored. These files prevent the ${direction}:\n${lines.join("\n")}`
    const advice = turns > 1 ? adviceForSeveral : adviceForOne(direction, refused, total)
    super(`${summary}\n${advice}`, { code: "session.undo", recoverable: false })
    this.refused = refused
    this.summary = summary
    this.turns = turns
  }
}

function turnsText(turns = 1): string {
  return turns > 1 ? `${turns} turns` : "turn"
}

/** The advice if several turns cannot be undone together. */
export const adviceForSeveral = "Check these files first, or undo fewer turns."

/** Whether to restore the state before a turn (`undo`) or the state after it (`redo`). */
export type Direction = "undo" | "redo"

const reasons: Record<RefusedFile["why"], string> = {
  changed: "it has been changed in the meantime",
  mixed: "another program changed it during the turn",
  "too-large": "its content cannot be stored, because it is too large or unreadable",
  unstored: "its old content could not be stored",
  unreadable: "it cannot be read. Check its permissions and those of its directories",
  "not-kept": "its old content is no longer stored",
  skipped: "it was skipped as requested",
}

function adviceForOne(direction: Direction, refused: readonly RefusedFile[], total: number): string {
  if (total > refused.length)
    return "Check these files first, or use --others to restore only the other files."
  const [left, next] = direction === "undo" ? ["turn", "before"] : ["undo", "after"]
  const alone = "The turn changed no other files, so --others does not help."
  const onward = `--skip keeps the turn as it is, and the next ${direction} continues with the turn ${next} it.`
  if (!refused.some(({ why }) => why === "changed")) return `${alone} ${onward}`
  return `${alone} To restore a changed file, first give it the content that it had after the ${left}. ${onward}`
}

/** How to treat files that cannot be restored. By default, nothing is changed. */
export interface UndoChoice {
  /** Whether to restore the other files, if any. */
  others?: boolean
  /** Whether to change no file, but count the turn as undone or redone. */
  skip?: boolean
}

/** The result of an undo or redo. */
export interface UndoOutcome {
  files: RestoredFile[]
  /** Files that were not changed, as the caller allowed with `others` or `skip`. */
  refused: RefusedFile[]
  /** Messages for the user about restored files whose permission bits could not be set. */
  problems: string[]
  /** The changes to pass to {@link putBack} to reverse this operation. */
  changes: FileChange[]
}

/**
 * Restores the files of a turn to their state before the turn or, if `direction` is `redo`, after the turn. Restores
 * all files or none. Throws {@link UndoRefusedError} if a file cannot be restored. {@link UndoChoice} describes how to
 * continue in this case. A redo skips the files that its undo skipped. `turns` is the number of turns to which the
 * changes belong; the error mentions it. Calls `onStart` directly before the first file changes. Can be repeated after
 * the process was killed at any moment.
 */
export async function putBack(
  changes: readonly FileChange[],
  {
    direction,
    contents,
    trackTemporary,
    others = false,
    skip = false,
    turns,
    onStart,
  }: UndoChoice & {
    direction: Direction
    contents: ContentStore
    trackTemporary: TrackTemporary
    turns?: number
    onStart?(): Promise<void>
  },
): Promise<UndoOutcome> {
  const concerned = changes.filter(({ left }) => !left)
  const { leaving = [], coming = [] } = Object.groupBy(concerned, (change) =>
    targetOf(change, direction).wanted ? "coming" : "leaving",
  )
  const planning = { direction, contents, leaving: pathsOf(leaving), coming: pathsOf(coming) }
  const planned = await Promise.all(
    concerned.map((change) => (skip ? { change, why: "skipped" as const } : plan(change, planning))),
  )
  const refused = planned.flatMap((entry) =>
    "why" in entry ? [{ path: entry.change.path, why: entry.why }] : [],
  )
  // If no other file can be restored, the turn stays as it is and can be undone later.
  const isAlone = refused.length === planned.length
  if (refused.length > 0 && (isAlone || !others) && !skip)
    throw new UndoRefusedError(direction, refused, { total: planned.length, turns })
  const moves = planned.flatMap((entry) => ("why" in entry || entry.done ? [] : [entry]))
  // A change of the mode alone can be reversed without the content.
  for (const { now, step } of moves) if (now && step) await contents.put(now.bytes)
  for (const { change, now } of moves)
    if (!isSameVersion(presentFile(await readState(change.path, planning.leaving)), now))
      throw new UndoRefusedError(direction, [...refused, { path: change.path, why: "changed" }], {
        total: planned.length,
        turns,
      })
  if (moves.length > 0) await onStart?.()
  try {
    await commitFiles(
      moves.flatMap(({ step }) => step ?? []),
      trackTemporary,
    )
  } catch (error) {
    if (TackleError.isInstance(error)) throw error
    throw new TackleError(
      `Cannot ${direction} the ${turnsText(turns)}: ${errorMessage(error)}. No file was changed. Fix this problem, then try again.`,
      { code: "session.undo", recoverable: false, cause: error },
    )
  }
  const problems = await restoreModes(moves)
  // Includes the directories of files that a killed process has already removed.
  const emptied = planned.flatMap((entry) =>
    "why" in entry || entry.wanted ? [] : (entry.change.directory ?? []),
  )
  for (const directory of new Set(emptied)) await removeEmptyDirectories(directory)
  return {
    files: moves.map(({ change, wanted }) => ({ path: change.path, kind: wanted ? "restored" : "removed" })),
    refused,
    problems,
    changes: [
      ...planned.map((entry) => ("why" in entry ? withLeft(entry, direction) : withMode(entry, direction))),
      ...changes.filter(({ left }) => left).map(withoutLeft),
    ],
  }
}

interface Refusal {
  change: FileChange
  why: RefusedFile["why"]
}

type Planned = Move | Refusal

interface Move {
  change: FileChange
  now: FileNow | undefined
  wanted: FileVersion | undefined
  /** The change of the file's content. Absent if only the mode changes. */
  step?: FileStep
  mode?: number
  /** Whether the file already has the wanted state. */
  done: boolean
}

/** A file or link as it is now. */
interface FileNow extends FileVersion {
  bytes: Uint8Array
}

interface Planning {
  direction: Direction
  contents: ContentStore
  /** Paths of the files that the undo or redo deletes. */
  leaving: ReadonlySet<string>
  /** Paths of the files that the undo or redo restores. */
  coming: ReadonlySet<string>
}

function pathsOf(changes: readonly FileChange[]): ReadonlySet<string> {
  return new Set(changes.map(({ path }) => path))
}

/** Returns the version to restore, and the version that the file should have now. */
function targetOf({ before, after }: FileChange, direction: Direction) {
  const [wanted, expected] = direction === "undo" ? [before, after] : [after, before]
  return { wanted, expected }
}

function isSameVersion(a: FileVersion | undefined, b: FileVersion | undefined): boolean {
  return a?.hash === b?.hash && a?.link === b?.link
}

async function plan(
  change: FileChange,
  { direction, contents, leaving, coming }: Planning,
): Promise<Planned> {
  const { path, fixed } = change
  const { wanted, expected } = targetOf(change, direction)
  if (fixed !== undefined) return { change, why: fixed }
  // A killed process may have already put a file in place of the directory, or a directory in place of the file.
  if (!wanted && ((await isBelow(path, coming)) || (await isDirectoryOf(path, coming))))
    return { change, now: undefined, wanted, done: true }
  const state = await readState(path, leaving)
  if (state === "unreadable") return { change, why: state }
  const overDirectory = state === "directory"
  const replaceable = overDirectory && !expected && (await holdsOnly(path, leaving).catch(() => false))
  if (typeof state === "string" && state !== "missing" && !replaceable) return { change, why: "changed" }
  const now = presentFile(state)
  // Revert only a mode that the turn set, not one that the user set later.
  const ours = now !== undefined && expected?.mode === now.mode
  const mode =
    wanted?.mode !== undefined && (ours || !now) && wanted.mode !== now?.mode ? { mode: wanted.mode } : {}
  if (isSameVersion(now, wanted) && !overDirectory) {
    const onlyMode = isSameVersion(expected, wanted) && "mode" in mode
    return onlyMode ? { change, now, wanted, ...mode, done: false } : { change, now, wanted, done: true }
  }
  if (!isSameVersion(now, expected)) return { change, why: "changed" }
  const bytes = wanted && (await contents.get(wanted.hash))
  if (wanted && !bytes) return { change, why: "not-kept" }
  // Without a stored copy of the current content, the operation could not be reversed.
  if (now && now.bytes.length > contents.fileBytes) return { change, why: "too-large" }
  const step = { path, exists: now !== undefined, bytes, link: wanted?.link, overDirectory, ...mode }
  return { change, now, wanted, step, ...mode, done: false }
}

type State = FileNow | "missing" | "directory" | "other" | "unreadable"

function presentFile(state: State): FileNow | undefined {
  return typeof state === "string" ? undefined : state
}

/**
 * Returns what is at the path. A path below a file or link that the undo or redo deletes counts as missing. A path
 * whose directory is now a link counts as `other`.
 */
async function readState(path: string, leaving: ReadonlySet<string>): Promise<State> {
  try {
    if (await isBelow(path, leaving)) return "missing"
    if (realPath(dirname(path)) !== dirname(path)) return "other"
    const stats = await lstat(path)
    if (stats.isDirectory()) return "directory"
    if (stats.isSymbolicLink()) {
      const bytes = await readlink(path, "buffer")
      return { hash: hashOf(bytes), link: true, bytes }
    }
    if (!stats.isFile()) return "other"
    const bytes = await readFile(path)
    return { hash: hashOf(bytes), mode: stats.mode & 0o7777, bytes }
  } catch (error) {
    const code = systemCode(error)
    if (code === undefined) throw error
    if (code === "ENOENT") return "missing"
    return code === "ENOTDIR" ? "other" : "unreadable"
  }
}

/** Returns true if a parent of the path is one of the paths, and not a directory. */
async function isBelow(path: string, paths: ReadonlySet<string>): Promise<boolean> {
  for (let parent = dirname(path); parent !== dirname(parent); parent = dirname(parent)) {
    if (!paths.has(parent)) continue
    const found = await lstat(parent).catch(() => undefined)
    if (found && !found.isDirectory()) return true
  }
  return false
}

/** Returns true if the path is a directory and one of the paths is below it. */
async function isDirectoryOf(path: string, paths: ReadonlySet<string>): Promise<boolean> {
  if (![...paths].some((other) => other.startsWith(`${path}/`))) return false
  return (await lstat(path).catch(() => undefined))?.isDirectory() ?? false
}

/**
 * Returns true if every file below the directory is one of the paths. Throws the system error if a directory cannot be
 * read.
 */
async function holdsOnly(directory: string, paths: ReadonlySet<string>): Promise<boolean> {
  for (const entry of await readdir(directory, { withFileTypes: true })) {
    const path = join(directory, entry.name)
    if (!(entry.isDirectory() ? await holdsOnly(path, paths) : paths.has(path))) return false
  }
  return true
}

/**
 * Removes a directory and its subdirectories if they contain no files. Never rejects, because a remaining directory is
 * harmless.
 */
async function removeEmptyDirectories(directory: string): Promise<void> {
  try {
    for (const entry of await readdir(directory, { withFileTypes: true }))
      if (entry.isDirectory()) await removeEmptyDirectories(join(directory, entry.name))
    await removeEmpty(directory)
  } catch (error) {
    if (systemCode(error) === undefined) throw error
  }
}

/** Sets the modes of restored files. Returns the problems, because the contents are already restored. */
async function restoreModes(moves: readonly Move[]): Promise<string[]> {
  const problems: string[] = []
  for (const { mode, change } of moves) {
    if (mode === undefined) continue
    try {
      await chmod(change.path, mode)
    } catch (error) {
      if (systemCode(error) === undefined) throw error
      problems.push(
        `Cannot set the mode of ${change.path} to ${mode.toString(8)}: ${errorMessage(error)}. Set it with chmod.`,
      )
    }
  }
  return problems
}

/** Marks a file that an undo did not change, because it needs no redo. */
function withLeft({ change }: Refusal, direction: Direction): FileChange {
  return direction === "undo" ? { ...change, left: true } : change
}

function withoutLeft({ left: _, ...change }: FileChange): FileChange {
  return change
}

/** Records the current mode of a removed file, so that the file is restored with this mode. */
function withMode({ change, now, wanted }: Move, direction: Direction): FileChange {
  if (!now || wanted) return change
  const version = { hash: now.hash, mode: now.mode, link: now.link }
  if (direction === "undo") return change.after?.hash === now.hash ? { ...change, after: version } : change
  return change.before?.hash === now.hash ? { ...change, before: version } : change
}
