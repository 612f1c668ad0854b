import type { Action, CallReference, Rule } from "../schema/permission.ts"
import type { JudgeOptions, Layer, Policy } from "./policy.ts"

/** The request of a call. The same shape as `AskRequest` of the tools. */
export interface PermissionAsk {
  permission: string
  patterns: string[]
  always?: string[]
  /** The files and directories that the call uses. A path outside the worktree asks for `external_directory`. */
  paths?: string[]
  metadata?: Record<string, unknown>
}

/** A request and the call that makes it. */
export interface SessionAsk extends PermissionAsk {
  sessionID: string
  tool?: CallReference
}

/** The context in which a request is judged. Directories are absolute. */
export interface Scope {
  directory: string
  worktree: string
  /** Called for each request, so that new grants apply. */
  policy(): Policy
  /** Directories of the session. Reading them does not ask. */
  own: readonly string[]
  /** The user's config directories and the data directory of the engine. Changing them asks unless a rule names them. */
  guarded?: readonly string[]
  /** `PATH` of the commands. A program inside the worktree is not trusted by its name. */
  searchPath?: string
}

/** One effect of a request, to be judged by the rules. */
export interface Check {
  permission: string
  /** The text that is shown. */
  pattern: string
  /** Its spellings. A rule matches if it matches one of them. */
  forms: readonly string[]
  options: JudgeOptions
  /** A default rule below all configured rules, such as the proof that a command only reads. */
  proof?: Rule
  /** The proof is valid only with the hardened environment for git. */
  hardenedGit?: boolean
  /** The file belongs to the session, so the check does not ask. */
  own?: boolean
  /** Why it asks, if not obvious from the rules. */
  reason?: string
  /** Why the file is protected. A protected file asks even inside the worktree. */
  protection?: string
  /** The path with links followed. */
  resolved?: string
  /** The patterns that "always" remembers. Undefined: "always" is not available. */
  remember?: readonly string[]
}

/** A check and its verdict. */
export interface JudgedCheck {
  permission: string
  pattern: string
  action: Action
  rule?: Rule
  layer?: Layer["name"] | "ceiling"
  reason?: string
}

/** One command of a shell text and its verdict. */
export interface JudgedCommand extends Pick<JudgedCheck, "pattern" | "action" | "rule" | "reason"> {
  argv: string[]
}

/** The verdict on a request: deny if any check denies, else ask if any check asks, else allow. */
export interface Verdict {
  action: Action
  checks: JudgedCheck[]
  /** For `bash`: every command of the text. */
  commands?: JudgedCommand[]
  /** For `bash`: git is allowed only because it reads, so it must run with `hardenedGitEnvironment`. */
  needsHardenedGit?: boolean
}
