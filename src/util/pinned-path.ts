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

/** A path leads elsewhere than when leave was given for it: somebody put a link or another file in its way. */
export class MovedPathError extends TackleError {
  constructor(path: string) {
    super(`${path} leads elsewhere than when leave was given for it. Nothing was touched.`, {
      code: "path.moved",
      recoverable: true,
    })
  }
}

/** Which file a name stands for. Another file has another one, whatever path led to it. */
export interface FileIdentity {
  device: bigint
  inode: bigint
}

/** The file at a resolved path, undefined where there is none or it cannot be looked at. */
export function identityAt(real: string): FileIdentity | undefined {
  try {
    return identityOf(lstatSync(real, { bigint: true }))
  } catch {
    // Whoever opens it hears of it from the system.
    return undefined
  }
}

/** Throws {@link MovedPathError} unless the open file is the one that was there. */
export function checkIdentity(descriptor: number, real: string, expected: FileIdentity | undefined): void {
  const opened = identityOf(fstatSync(descriptor, { bigint: true }))
  if (opened.inode !== expected?.inode || opened.device !== expected.device) throw new MovedPathError(real)
}

function identityOf({ dev, ino }: { dev: bigint; ino: bigint }): FileIdentity {
  return { device: dev, inode: ino }
}

/**
 * Opens what lies at a resolved path, and nothing else: no link in it is followed, whenever it was put there. Leave is
 * given for a path; whoever then opens that path again may be led to another file. Returns the descriptor, which the
 * caller closes. Throws {@link MovedPathError}, and what the system throws.
 */
export function openPinned(real: string, flags: number): number {
  const descriptor = openOnce(real, flags | constants.O_NOFOLLOW)
  if (isAt(descriptor, real)) return descriptor
  closeSync(descriptor)
  throw new MovedPathError(real)
}

/** A directory that cannot be exchanged any more. Whoever opens one closes it. */
export interface PinnedDirectory {
  /** The directories that had to be made for it, the outermost first. Absolute. */
  made: readonly string[]
  /** The path of an entry, by way of the open directory where the system has such paths. */
  entry(name: string): string
  close(): void
}

/**
 * Opens the directory at a resolved path as {@link openPinned} does. It and its parents are made where they are missing,
 * unless `make` is false.
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
    // A link at the end of a path that had none.
    if (systemCode(error) === "ELOOP") throw new MovedPathError(real)
    throw error
  }
}

const descriptors = "/proc/self/fd"
const hasDescriptorPaths = existsSync(descriptors)

/** Linux says where an open file lies. Elsewhere the path is looked at once more: a swap to and fro goes unseen. */
function isAt(descriptor: number, real: string): boolean {
  if (hasDescriptorPaths) return readlinkSync(`${descriptors}/${descriptor}`) === real
  const [opened, found] = [fstatSync(descriptor), lstatSync(real)]
  return opened.ino === found.ino && opened.dev === found.dev && realPath(real) === real
}

function entryOf(descriptor: number, real: string, name: string): string {
  return hasDescriptorPaths ? `${descriptors}/${descriptor}/${name}` : join(real, name)
}
