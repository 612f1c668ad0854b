/** What every error of ours carries, so that callers sort by code and not by prose. */
export interface TackleErrorOptions {
  /** Stable, lower-case, dotted: `permission.denied`. Part of the public contract. */
  code: string
  /** True where the model can go on after reading the message; false where the run has to end. */
  recoverable: boolean
  cause?: unknown
}

const marker = Symbol.for("tackle.error")

/**
 * Base of all errors that Tackle throws on purpose. The message says what was wrong, where, and the next move;
 * it is read by the model or the person as it stands.
 */
export class TackleError extends Error {
  readonly code: string
  readonly recoverable: boolean
  readonly [marker] = true

  constructor(message: string, options: TackleErrorOptions) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.name = new.target.name
    this.code = options.code
    this.recoverable = options.recoverable
  }

  /** Works across bundles and realms, where `instanceof` does not. */
  static isInstance(value: unknown): value is TackleError {
    return typeof value === "object" && value !== null && marker in value
  }
}

/** A mistake of the person at the command line or in a config file: exit code 2. */
export class UsageError extends TackleError {
  constructor(message: string, cause?: unknown, code = "usage") {
    super(message, { code, recoverable: false, cause })
  }
}

/** The text of anything thrown, never empty. */
export function errorMessage(error: unknown): string {
  if (error instanceof Error) return error.message || error.name
  const text = String(error)
  return text === "" || text === "[object Object]" ? safeJson(error) : text
}

/** The `code` of a system error (`ENOENT`), if it has one. */
export function systemCode(error: unknown): string | undefined {
  if (typeof error !== "object" || error === null || !("code" in error)) return undefined
  return typeof error.code === "string" ? error.code : undefined
}

/** Why a file cannot be read or written, for a person: the usual reasons in words, any other as the system says it. */
export function fileReason(error: unknown): string {
  return reasons[systemCode(error) ?? ""] ?? errorMessage(error)
}

const reasons: Readonly<Record<string, string>> = {
  ENOENT: "there is no such file or directory",
  EISDIR: "it is a directory",
  ENOTDIR: "a part of its path is no directory",
  EACCES: "you have no right to",
  EROFS: "the file system there is read-only",
  ENOSPC: "the disk is full",
}

function safeJson(value: unknown): string {
  try {
    return JSON.stringify(value) ?? "unknown error"
  } catch {
    return "unknown error"
  }
}
