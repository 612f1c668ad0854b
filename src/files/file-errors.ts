import { TackleError } from "../util/errors.ts"

/** Nothing is there. The message names what is near. */
export class PathNotFoundError extends TackleError {
  readonly path: string
  constructor(path: string, message: string) {
    super(message, { code: "file.not-found", recoverable: true })
    this.path = path
  }
}

/** The path is a pipe, socket or device: reading it could block for ever or have effects. */
export class SpecialFileError extends TackleError {
  readonly path: string
  constructor(path: string, kind: string) {
    super(`${path} is a ${kind}, not a file or directory. Only those can be read.`, {
      code: "file.special",
      recoverable: true,
    })
    this.path = path
  }
}

/** The file's content is nothing that a model can read. */
export class UnreadableContentError extends TackleError {
  constructor(message: string) {
    super(message, { code: "file.content", recoverable: true })
  }
}

/** The first line asked for lies past the last one. */
export class OffsetError extends TackleError {
  constructor(message: string) {
    super(message, { code: "file.offset", recoverable: true })
  }
}

/** The system refused: a missing right, a loop of links, a bad name. */
export class FileAccessError extends TackleError {
  constructor(message: string, cause: unknown) {
    super(message, { code: "file.access", recoverable: true, cause })
  }
}

/** The path names a file where a directory is needed. */
export class NotDirectoryError extends TackleError {
  constructor(path: string) {
    super(`${path} is a file, not a directory. Use read for its text.`, {
      code: "file.not-directory",
      recoverable: true,
    })
  }
}
