import type { Action, CallReference, Rule } from "../schema/permission.ts"
import type { JudgeOptions, Layer, Policy } from "./policy.ts"

/** What a call asks leave for: the same shape as `AskRequest` of the tools. */
export interface PermissionAsk {
  permission: string
  patterns: string[]
  always?: string[]
  /** Files and directories that are touched: what lies outside the worktree asks `external_directory`. */
  paths?: string[]
  metadata?: Record<string, unknown>
}

/** A request with the call it belongs to. */
export interface SessionAsk extends PermissionAsk {
  sessionID: string
  tool?: CallReference
}

/** Where a request is judged. Directories are absolute. */
export interface Scope {
  directory: string
  worktree: string
  /** Read again at each request, so that new grants count. */
  policy(): Policy
  /** Directories of the session itself, or meant for it: what lies there is read without asking, as if it lay inside. */
  own: readonly string[]
  /** Directories of the person's own config and of the engine's data: a change there asks, whatever covers it. */
  guarded?: readonly string[]
  /** `PATH` of the commands that run. A program found inside the worktree is not the one its name stands for. */
  searchPath?: string
}

/** One thing that a request would do, before the rules are asked. */
export interface Check {
  permission: string
  /** How it is shown. */
  pattern: string
  /** Its spellings. A rule matches if it matches one of them. */
  forms: readonly string[]
  options: JudgeOptions
  /** A default that stands below all configured rules, such as the proof that a command only reads. */
  proof?: Rule
  /** The proof holds only with the hardened environment for git. */
  hardenedGit?: boolean
  /** A file of the session itself: nobody is asked. */
  own?: boolean
  /** Why it asks where the rules alone do not tell. */
  reason?: string
  /** It is a file that asks even inside the worktree. */
  protection?: string
  /** The path with links followed. */
  resolved?: string
  /** The patterns that an "always" would remember. Absent: nothing may be remembered. */
  remember?: readonly string[]
}

/** A check with its verdict. */
export interface JudgedCheck {
  permission: string
  pattern: string
  action: Action
  rule?: Rule
  layer?: Layer["name"] | "ceiling"
  reason?: string
}

/** One command of a shell text with its verdict. */
export interface JudgedCommand {
  argv: string[]
  pattern: string
  action: Action
  rule?: Rule
  reason?: string
}

/** The verdict on a request: any deny denies, else any ask asks, else it is allowed. */
export interface Verdict {
  action: Action
  checks: JudgedCheck[]
  /** For `bash`: every command found. */
  commands?: JudgedCommand[]
  /** For `bash`: git is allowed by proof alone, so it has to run with `hardenedGitEnvironment`. */
  needsHardenedGit?: boolean
}
