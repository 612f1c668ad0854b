import { chmod, lstat, readFile } from "node:fs/promises"
import type { FileChange, FileVersion } from "../schema/part.ts"
import { systemCode, TackleError } from "../util/errors.ts"
import { realPath } from "../util/paths.ts"
import { commitFiles, type FileStep } from "./commit-files.ts"
import { type ContentStore, hashOf } from "./content-store.ts"
import type { TrackTemporary } from "./temporary-files.ts"

/** What was done to one file. */
export interface RestoredFile {
  path: string
  /** `removed`: there is no file now. */
  kind: "restored" | "removed"
}

/** A file that was left as it is, and why. */
export interface RefusedFile {
  path: string
  /** `skipped`: that was asked for, of all files of the turn. */
  why: "changed" | "mixed" | "too-large" | "not-kept" | "skipped"
}

/** Some files cannot be put back, so none was touched. */
export class UndoRefusedError extends TackleError {
  readonly refused: readonly RefusedFile[]

  /** `total`: so many files the turn has, with those that are refused. */
  constructor(direction: Direction, refused: readonly RefusedFile[], total: number) {
    const lines = refused.map(({ path, why }) => `  ${path}: ${reasons[why]}`)
    const advice =
      total > refused.length
        ? "Look at them first, or put back the others alone (--others)."
        : adviceAlone(direction, refused)
    super(`Cannot ${direction} the turn; no file was touched. In the way:\n${lines.join("\n")}\n${advice}`, {
      code: "session.undo",
      recoverable: false,
    })
    this.refused = refused
  }
}

/** Back to before a turn, or forward to after it. */
export type Direction = "undo" | "redo"

const reasons: Record<RefusedFile["why"], string> = {
  changed: "it was changed since",
  mixed: "somebody else changed it in the middle of the turn",
  "too-large": "it was too large to be kept",
  "not-kept": "what it was is no longer kept",
  skipped: "it was to be left alone",
}

/** What holds where the turn changed nothing else: only what was changed since can be made good, but all be passed over. */
function adviceAlone(direction: Direction, refused: readonly RefusedFile[]): string {
  const [left, next] = direction === "undo" ? ["turn", "before"] : ["undo", "after"]
  const alone = "The turn changed no other file, so --others does not help."
  const onward = `--skip leaves the turn as it is: the next ${direction} goes on with the one ${next} it.`
  if (!refused.some(({ why }) => why === "changed")) return `${alone} ${onward}`
  return `${alone} What was changed since can be put back once it is again as the ${left} left it. ${onward}`
}

/** What becomes of files that cannot be put back: without a choice nothing is touched. */
export interface UndoChoice {
  /** They are left alone, as long as there are others. */
  others?: boolean
  /** All files of the turn are left alone, and the turn counts as gone back over. */
  skip?: boolean
}

/** What became of the files of a turn. */
export interface UndoOutcome {
  files: RestoredFile[]
  /** Left as they are, where that was asked for. */
  refused: RefusedFile[]
  /** The changes, to go the other way with. */
  changes: FileChange[]
}

/**
 * Puts the files of a turn back to what they were before it, or with `redo` to what it had made of them: all of them
 * or none. A file whose bytes are neither is somebody else's by now: throws {@link UndoRefusedError}, or leaves those
 * alone with `others` as long as there are others. With `skip` all are left alone. What an undo left, its redo leaves too.
 * Throws what the system throws, with everything as it was.
 */
export async function putBack(
  changes: readonly FileChange[],
  {
    direction,
    contents,
    trackTemporary,
    others = false,
    skip = false,
  }: UndoChoice & { direction: Direction; contents: ContentStore; trackTemporary: TrackTemporary },
): Promise<UndoOutcome> {
  const concerned = changes.filter(({ left }) => !left)
  const planned = await Promise.all(
    concerned.map((change) =>
      skip ? { change, why: "skipped" as const } : plan(change, direction, contents),
    ),
  )
  const refused = planned.flatMap((entry) =>
    "why" in entry ? [{ path: entry.change.path, why: entry.why }] : [],
  )
  // Without others the turn stays as it is: it may be undone once what is in the way is gone.
  const isAlone = refused.length === planned.length
  if (refused.length > 0 && (isAlone || !others) && !skip)
    throw new UndoRefusedError(direction, refused, planned.length)
  const moves = planned.flatMap((entry) => ("why" in entry || entry.done ? [] : [entry]))
  for (const { now, change } of moves) await keepForTheWayBack(now, change.path, contents)
  for (const { change, now } of moves)
    if ((await lookAt(change.path))?.hash !== now?.hash)
      throw new UndoRefusedError(
        direction,
        [...refused, { path: change.path, why: "changed" }],
        planned.length,
      )
  await commitFiles(
    moves.flatMap(({ step }) => step ?? []),
    trackTemporary,
  )
  for (const { mode, change } of moves) if (mode !== undefined) await chmod(change.path, mode)
  return {
    files: moves.map(({ change, wanted }) => ({ path: change.path, kind: wanted ? "restored" : "removed" })),
    refused,
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
  /** Absent where only the mode changes. */
  step?: FileStep
  mode?: number
  /** Nothing is left to do. */
  done: boolean
}

interface FileNow {
  hash: string
  mode: number
  bytes: Uint8Array
}

async function plan(change: FileChange, direction: Direction, contents: ContentStore): Promise<Planned> {
  const { path, before, after, fixed } = change
  const [wanted, expected] = direction === "undo" ? [before, after] : [after, before]
  if (fixed !== undefined) return { change, why: fixed }
  const now = await lookAt(path)
  if (now === null) return { change, why: "changed" }
  // The person's mode stays: only the one that the turn gave is taken back.
  const ours = now !== undefined && expected?.mode === now.mode
  const mode =
    wanted?.mode !== undefined && (ours || !now) && wanted.mode !== now?.mode ? { mode: wanted.mode } : {}
  if (now?.hash === wanted?.hash) {
    const onlyMode = expected?.hash === wanted?.hash && "mode" in mode
    return onlyMode ? { change, now, wanted, ...mode, done: false } : { change, now, wanted, done: true }
  }
  if (now?.hash !== expected?.hash) return { change, why: "changed" }
  const bytes = wanted && (await contents.get(wanted.hash))
  if (wanted && !bytes) return { change, why: "not-kept" }
  return { change, now, wanted, step: { path, exists: now !== undefined, bytes }, ...mode, done: false }
}

/** The regular file at the path; undefined where there is nothing, null where there is something else. */
async function lookAt(path: string): Promise<FileNow | undefined | null> {
  if (realPath(path) !== path) return null
  try {
    const stats = await lstat(path)
    if (!stats.isFile()) return null
    const bytes = await readFile(path)
    return { hash: hashOf(bytes), mode: stats.mode & 0o7777, bytes }
  } catch (error) {
    const code = systemCode(error)
    if (code === "ENOENT") return undefined
    if (code === "ENOTDIR") return null
    throw error
  }
}

async function keepForTheWayBack(
  now: FileNow | undefined,
  path: string,
  contents: ContentStore,
): Promise<void> {
  if (!now || (await contents.put(now.bytes)) !== undefined) return
  throw new TackleError(`${path} is too large to be kept. Nothing was changed.`, {
    code: "session.undo",
    recoverable: false,
  })
}

/** A file that an undo left has nothing to be done again. */
function withLeft({ change }: Refusal, direction: Direction): FileChange {
  return direction === "undo" ? { ...change, left: true } : change
}

function withoutLeft({ left: _, ...change }: FileChange): FileChange {
  return change
}

/** A file that goes away comes back with the mode it had. */
function withMode({ change, now, wanted }: Move, direction: Direction): FileChange {
  if (!now || wanted) return change
  const version = { hash: now.hash, mode: now.mode }
  if (direction === "undo") return change.after?.hash === now.hash ? { ...change, after: version } : change
  return change.before?.hash === now.hash ? { ...change, before: version } : change
}
