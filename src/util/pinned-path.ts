import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readlinkSync,
} from "node:fs"
import { basename, dirname, join } from "node:path"
import { systemCode, TackleError } from "./errors.ts"
import { realPath } from "./paths.ts"

/**
 * Thrown if a path no longer resolves to the file for which permission was granted, because a link or another file
 * replaced a part of the path.
 */
export class MovedPathError extends TackleError {
  constructor(path: string) {
    super(
      `${path} no longer leads to the file for which permission was granted. Nothing was changed. Check the path, then try again.`,
      {
        code: "path.moved",
        recoverable: true,
      },
    )
  }
}

/** Identifies a file independently of its path. */
export interface FileIdentity {
  device: bigint
  inode: bigint
}

/**
 * Returns the identity of the file at a resolved path, or undefined if the file does not exist or cannot be inspected.
 */
export function identityAt(real: string): FileIdentity | undefined {
  try {
    return identityOf(lstatSync(real, { bigint: true }))
  } catch {
    // The caller opens the file and reports the error.
    return undefined
  }
}

/** Throws {@link MovedPathError} unless the open file has the expected identity. */
export function checkIdentity(descriptor: number, real: string, expected: FileIdentity | undefined): void {
  const opened = identityOf(fstatSync(descriptor, { bigint: true }))
  if (opened.inode !== expected?.inode || opened.device !== expected.device) throw new MovedPathError(real)
}

function identityOf({ dev, ino }: { dev: bigint; ino: bigint }): FileIdentity {
  return { device: dev, inode: ino }
}

/**
 * Opens a resolved path without following links, including links that were created after it was resolved, because
 * permission was granted for this path and a link could redirect it to another file. Returns a descriptor that the
 * caller must close. Throws {@link MovedPathError} if the path now leads to a different file, and a system error if the
 * file cannot be opened.
 */
export function openPinned(real: string, flags: number): number {
  const descriptor = openOnce(real, flags | constants.O_NOFOLLOW)
  if (isAt(descriptor, real)) return descriptor
  closeSync(descriptor)
  throw new MovedPathError(real)
}

/**
 * A directory that is held open. On systems with `/proc`, replacing its path does not redirect operations on its
 * entries. The caller must close it.
 */
export interface PinnedDirectory {
  /** Absolute paths of the directories that were created to open this one, outermost first. */
  made: readonly string[]
  /** Returns a path to the entry. The path goes through the open directory on systems that support such paths. */
  entry(name: string): string
  close(): void
}

/**
 * Opens the directory at a resolved path, like {@link openPinned}. Creates the directory and its parents unless `make`
 * is false.
 */
export function openPinnedDirectory(real: string, { make = true } = {}): PinnedDirectory {
  const made: string[] = []
  const descriptor = make ? openOrMake(real, made) : openPinned(real, directoryFlags)
  return {
    made,
    entry: (name) => entryOf(descriptor, real, name),
    close: () => closeSync(descriptor),
  }
}

const directoryFlags = constants.O_RDONLY | constants.O_DIRECTORY

function openOrMake(real: string, made: string[]): number {
  try {
    return openPinned(real, directoryFlags)
  } catch (error) {
    if (systemCode(error) !== "ENOENT" || dirname(real) === real) throw error
  }
  const parent = openOrMake(dirname(real), made)
  try {
    mkdirSync(entryOf(parent, dirname(real), basename(real)))
    made.push(real)
  } catch (error) {
    if (systemCode(error) !== "EEXIST") throw error
  } finally {
    closeSync(parent)
  }
  return openPinned(real, directoryFlags)
}

function openOnce(real: string, flags: number): number {
  try {
    return openSync(real, flags)
  } catch (error) {
    // The last entry of the path is now a link. It was not a link when the path was resolved.
    if (systemCode(error) === "ELOOP") throw new MovedPathError(real)
    throw error
  }
}

const descriptors = "/proc/self/fd"
const hasDescriptorPaths = existsSync(descriptors)

/**
 * Returns true if the descriptor refers to the path. Linux reports the path of an open file. On other systems, this
 * function checks the path again, and does not detect a replacement that has been reverted.
 */
function isAt(descriptor: number, real: string): boolean {
  if (hasDescriptorPaths) return readlinkSync(`${descriptors}/${descriptor}`) === real
  const [opened, found] = [fstatSync(descriptor), lstatSync(real)]
  return opened.ino === found.ino && opened.dev === found.dev && realPath(real) === real
}

function entryOf(descriptor: number, real: string, name: string): string {
  return hasDescriptorPaths ? `${descriptors}/${descriptor}/${name}` : join(real, name)
}
