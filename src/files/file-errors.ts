import { TackleError } from "../util/errors.ts"

/** Thrown if a path does not exist. The message suggests similar names. */
export class PathNotFoundError extends TackleError {
  readonly path: string
  constructor(path: string, message: string) {
    super(message, { code: "file.not-found", recoverable: true })
    this.path = path
  }
}

/** Thrown if a path is a pipe, socket or device. Reading it could block or have side effects. */
export class SpecialFileError extends TackleError {
  readonly path: string
  constructor(path: string, kind: string) {
    super(`${path} is a ${kind}, not a file or directory. Only files and directories can be read.`, {
      code: "file.special",
      recoverable: true,
    })
    this.path = path
  }
}

/** Thrown if a file has content that a model cannot read. */
export class UnreadableContentError extends TackleError {
  constructor(message: string) {
    super(message, { code: "file.content", recoverable: true })
  }
}

/** Thrown if the requested offset is beyond the last line. */
export class OffsetError extends TackleError {
  constructor(message: string) {
    super(message, { code: "file.offset", recoverable: true })
  }
}

/**
 * Thrown if the system denies access to a file, for example because of a missing permission, a link loop or an invalid
 * name.
 */
export class FileAccessError extends TackleError {
  constructor(message: string, cause: unknown) {
    super(message, { code: "file.access", recoverable: true, cause })
  }
}

/** Thrown if a path that must be a directory is not a directory. */
export class NotDirectoryError extends TackleError {
  constructor(path: string) {
    super(`${path} is a file, not a directory. Use the read tool to read it.`, {
      code: "file.not-directory",
      recoverable: true,
    })
  }
}
