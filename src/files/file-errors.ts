import { TackleError } from "../util/errors.ts"

/** The path does not exist. The message suggests similar names. */
export class PathNotFoundError extends TackleError {
  readonly path: string
  constructor(path: string, message: string) {
    super(message, { code: "file.not-found", recoverable: true })
    this.path = path
  }
}

/** The path is a pipe, socket or device. Reading it could block or have side effects. */
export class SpecialFileError extends TackleError {
  readonly path: string
  constructor(path: string, kind: string) {
    super(`${path} is a ${kind}, not a file or directory. Only these can be read.`, {
      code: "file.special",
      recoverable: true,
    })
    this.path = path
  }
}

/** A model cannot read the content of the file. */
export class UnreadableContentError extends TackleError {
  constructor(message: string) {
    super(message, { code: "file.content", recoverable: true })
  }
}

/** The offset is beyond the last line. */
export class OffsetError extends TackleError {
  constructor(message: string) {
    super(message, { code: "file.offset", recoverable: true })
  }
}

/** The system denied access: missing permission, a link loop, an invalid name. */
export class FileAccessError extends TackleError {
  constructor(message: string, cause: unknown) {
    super(message, { code: "file.access", recoverable: true, cause })
  }
}

/** The path is a file, and a directory is required. */
export class NotDirectoryError extends TackleError {
  constructor(path: string) {
    super(`${path} is a file, not a directory. Use read for its text.`, {
      code: "file.not-directory",
      recoverable: true,
    })
  }
}
