import { types } from "node:util"

/** Properties of every Tackle error. Callers check the code, not the message. */
export interface TackleErrorOptions {
  /** Stable, lower-case code, such as `aborted` or `permission.denied`. Part of the public API. */
  code: string
  /** Whether the model can continue after reading the message. If false, the run must end. */
  recoverable: boolean
  cause?: unknown
}

const marker = Symbol.for("tackle.error")

/**
 * Base class of all errors that Tackle throws on purpose. The message is written for the model or the user: it
 * describes the problem, its location and the next step.
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

  /** Returns true for a Tackle error. Works across bundles and realms, unlike `instanceof`. */
  static isInstance(value: unknown): value is TackleError {
    return typeof value === "object" && value !== null && !types.isProxy(value) && marker in value
  }
}

/**
 * Thrown for invalid input from the user or the caller, such as an unknown flag or an error in a config file. Commands
 * exit with code 2.
 */
export class UsageError extends TackleError {
  constructor(message: string, cause?: unknown, code = "usage") {
    super(message, { code, recoverable: false, cause })
  }
}

/** Returns a thrown value's message, which is never empty. Never throws, even if reading the value does. */
export function errorMessage(error: unknown): string {
  try {
    if (error instanceof Error) return String(error.message) || String(error.name) || "unknown error"
    const text = String(error)
    return text === "" || text === "[object Object]" ? safeJson(error) : text
  } catch {
    return unreadable
  }
}

/** Returns a thrown value's message on one line of at most 300 characters, without stack frames. Never throws. */
export function errorLine(error: unknown): string {
  const lines = errorMessage(error).split(/\r\n|\r|\n/)
  const text = lines
    .map((line) => line.trim())
    .filter((line) => line !== "" && !/^at .+:\d+\)?$/.test(line))
    .join(" ")
  return text.length > maxLineLength ? `${text.slice(0, maxLineLength - 1)}…` : text
}

const maxLineLength = 300

const unreadable = "an error that cannot be read"

/**
 * Returns the `code` of a thrown value, such as `ENOENT` for a system error, or undefined if the value has no `code`
 * that is a string. Never throws, even if reading the value does.
 */
export function systemCode(error: unknown): string | undefined {
  try {
    if (typeof error !== "object" || error === null || !("code" in error)) return undefined
    return typeof error.code === "string" ? error.code : undefined
  } catch {
    return undefined
  }
}

/**
 * Returns the first system error code that matches the pattern, from the error or its causes, or undefined if no code
 * matches. Checks at most five errors.
 */
export function causeCode(error: unknown, pattern = /./): string | undefined {
  let current = error
  for (let depth = 0; depth < maxCauses && current instanceof Error; depth++) {
    const code = systemCode(current)
    if (code !== undefined && pattern.test(code)) return code
    current = current.cause
  }
  return undefined
}

/** Maximum number of errors to inspect, because causes can be circular. */
const maxCauses = 5

/**
 * Returns a value that third-party code threw, or an error in its place if reading the value may run code: for a proxy,
 * or for an object whose prototype or message cannot be read.
 */
export function readableError(error: unknown): unknown {
  if ((typeof error !== "object" && typeof error !== "function") || error === null) return error
  if (types.isProxy(error) || errorMessage(error) === unreadable) return new Error(unreadable)
  return error
}

/** Returns the reason why a file cannot be read or written, as a phrase for users. */
export function fileReason(error: unknown): string {
  return reasons[systemCode(error) ?? ""] ?? errorMessage(error)
}

const reasons: Readonly<Record<string, string>> = {
  ENOENT: "no such file or directory",
  EISDIR: "it is a directory",
  ENOTDIR: "part of its path is not a directory",
  EACCES: "permission denied",
  EROFS: "the file system is read-only",
  ENOSPC: "the disk is full",
}

/**
 * Returns advice for an error that the state of the system causes, such as a full disk, or undefined for other errors.
 * The advice does not repeat the cause.
 */
export function systemAdvice(error: unknown): string | undefined {
  return advice[systemCode(error) ?? ""]
}

const advice: Readonly<Record<string, string>> = {
  ENOSPC: "Free some disk space, then try again.",
  EDQUOT: "Delete files that are not needed, then try again.",
  EMFILE: "Raise the limit on open files with `ulimit -n`, then try again.",
  ENFILE: "Close other programs, then try again.",
  ENOMEM: "Close other programs, then try again.",
  EROFS: "Use a directory on another file system.",
  EIO: "Check the disk or device.",
}

function safeJson(value: unknown): string {
  try {
    return JSON.stringify(value) ?? "unknown error"
  } catch {
    return "unknown error"
  }
}
