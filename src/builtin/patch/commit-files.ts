import { copyFile, link, mkdir, rename, rm, rmdir } from "node:fs/promises"
import { dirname } from "node:path"
import type { FileStamp } from "../../tool/context.ts"
import { errorMessage, systemCode, TackleError } from "../../util/errors.ts"
import { type StagedFile, stageFile, temporaryBeside } from "../file/atomic-write.ts"
import { showName } from "../file/show-name.ts"

/** One file as it is to become. `path` is resolved. */
export interface FileStep {
  path: string
  /** Whether a file stands there now. */
  exists: boolean
  /** Undefined: the file goes. */
  bytes: Uint8Array | undefined
  /** The file whose mode and owner the new bytes get. Default: the one at `path`. */
  like?: string
}

/** Some files could be neither changed nor put back. The message names them and where their old bytes are. */
export class RollbackError extends TackleError {
  constructor(message: string, cause: unknown) {
    super(message, { code: "file.rollback", recoverable: true, cause })
  }
}

/**
 * Makes all changes or none. Everything new is on the disk beside its place before the first file changes, so that a
 * full disk or a missing right is met in time; then each takes its place by a rename, files that go last. When one
 * fails, those before it are put back: the same bytes, mode and times, being the same files; new directories go.
 * Returns the stamps of the written files by path. Throws what the system threw, and {@link RollbackError} where
 * putting back failed too. A process that dies half-way leaves old bytes as `.tackle-*.tmp` beside their places.
 */
export async function commitFiles(steps: readonly FileStep[]): Promise<Map<string, FileStamp>> {
  const staged = new Map<FileStep, StagedFile>()
  const undo: Undo[] = []
  const needed = new Set<string>()
  try {
    for (const step of steps) {
      if (step.bytes === undefined) continue
      await makeParents(step.path, undo)
      staged.set(step, await stageFile(step.path, step.bytes, step.like))
    }
    for (const [{ path, exists }, { temporary }] of staged) {
      if (exists) await replace(path, temporary, undo)
      else await place(path, temporary, undo)
    }
    for (const { path, bytes } of steps) if (bytes === undefined) await remove(path, undo)
    return new Map([...staged].map(([{ path }, { stamp }]) => [path, stamp]))
  } catch (error) {
    const failures = await putBack(undo)
    if (failures.length === 0) throw error
    for (const { backup } of failures) if (backup !== undefined) needed.add(backup)
    throw rollbackError(failures, error)
  } finally {
    const temporary = [...staged.values()].map((file) => file.temporary)
    const backups = undo.flatMap(({ backup }) => backup ?? [])
    for (const path of [...temporary, ...backups]) if (!needed.has(path)) await rm(path, { force: true })
  }
}

/** How one thing is taken back, in words and in deed. */
interface Undo {
  what: string
  /** Where the old bytes are as long as they are not back. */
  backup?: string
  run: () => Promise<void>
}

async function makeParents(path: string, undo: Undo[]): Promise<void> {
  const parent = dirname(path)
  const first = await mkdir(parent, { recursive: true })
  if (first === undefined) return
  undo.push({ what: `the new directory ${showName(first)}`, run: () => removeEmpty(parent, first) })
}

/** From the innermost out to the first that was made. One in which something else stands by now stays. */
async function removeEmpty(innermost: string, first: string): Promise<void> {
  try {
    for (let directory = innermost; ; directory = dirname(directory)) {
      await rmdir(directory)
      if (directory === first) return
    }
  } catch (error) {
    const code = systemCode(error)
    if (code !== "ENOTEMPTY" && code !== "EEXIST" && code !== "ENOENT") throw error
  }
}

async function replace(path: string, temporary: string, undo: Undo[]): Promise<void> {
  const backup = temporaryBeside(path)
  await keep(path, backup)
  undo.push({ what: showName(path), backup, run: () => rename(backup, path) })
  await rename(temporary, path)
}

/** A second name for the file, so that it never is without one; a copy where the file system knows no links. */
async function keep(path: string, backup: string): Promise<void> {
  try {
    await link(path, backup)
  } catch (error) {
    const code = systemCode(error)
    if (code !== "EPERM" && code !== "ENOTSUP" && code !== "ENOSYS" && code !== "EMLINK") throw error
    await copyFile(path, backup)
  }
}

async function place(path: string, temporary: string, undo: Undo[]): Promise<void> {
  await rename(temporary, path)
  undo.push({ what: showName(path), run: () => rm(path, { force: true }) })
}

async function remove(path: string, undo: Undo[]): Promise<void> {
  const backup = temporaryBeside(path)
  await rename(path, backup)
  undo.push({ what: showName(path), backup, run: () => rename(backup, path) })
}

interface Failure {
  what: string
  backup: string | undefined
  error: unknown
}

/** Latest first; what cannot be taken back does not keep the rest from it. */
async function putBack(undo: readonly Undo[]): Promise<Failure[]> {
  const failures: Failure[] = []
  for (const { what, backup, run } of undo.toReversed()) {
    try {
      await run()
    } catch (error) {
      failures.push({ what, backup, error })
    }
  }
  return failures
}

function rollbackError(failures: readonly Failure[], cause: unknown): RollbackError {
  const named = failures.map(({ what, backup, error }) => {
    const where = backup === undefined ? "" : `, whose old bytes are in ${showName(backup)}`
    return `${what}${where} (${errorMessage(error)})`
  })
  return new RollbackError(
    `${errorMessage(cause)}. The files that had changed by then were to be put back, which failed for: ${named.join("; ")}. ` +
      "Look at them before you go on.",
    cause,
  )
}
