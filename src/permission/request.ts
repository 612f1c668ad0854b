import type { Action, CallReference, Rule } from "../schema/permission.ts"
import type { Alias, JudgeOptions, Layer, Policy } from "./policy.ts"

/** A permission request from a call: the `AskRequest` of a tool, to which the engine adds `alias` and `confined`. */
export interface PermissionAsk {
  permission: string
  /** A second name for the permission, which rules can use. */
  alias?: Alias | undefined
  patterns: string[]
  always?: string[]
  /** The files and directories that the call uses. A path outside the worktree requires `external_directory`. */
  paths?: string[]
  metadata?: Record<string, unknown>
  /** Whether the command should run in the scope's sandbox, if that sandbox works. Only for `bash`. */
  confined?: boolean
}

/** A request, and the session and call that make it. */
export interface SessionAsk extends PermissionAsk {
  sessionID: string
  tool?: CallReference
}

/** The context in which a request is judged. Directories are absolute. */
export interface Scope {
  directory: string
  worktree: string
  /** Returns the policy. Called for each request, so that new grants apply. */
  policy(): Policy
  /** Directories that belong to the session. The session can read them without asking. */
  own: readonly string[]
  /**
   * The user's config directories and the engine's data directory. Changing them requires permission, unless a rule
   * names and allows them.
   */
  guarded?: readonly string[]
  /** The sandbox for commands. Undefined if commands run without a sandbox. */
  sandbox?: ScopeSandbox
  /**
   * The `PATH` with which commands run. If a command's name leads to a program inside the worktree, only deny rules for
   * the name apply to this program.
   */
  searchPath?: string
}

/** The sandbox in which the commands in a scope run. */
export interface ScopeSandbox {
  /** Returns true if the sandbox works, so that every command runs in it. */
  works(): Promise<boolean>
  /** Whether commands that run in the sandbox are allowed without asking. */
  allows: boolean
}

/** One effect of a request, which the rules judge. */
export interface Check {
  permission: string
  /** The text shown to the user. */
  pattern: string
  /** Spellings of the pattern. A rule matches if it matches one of them. */
  forms: readonly string[]
  options: JudgeOptions
  /** An additional default rule, such as the proof that a command only reads. Every configured rule overrules it. */
  proof?: Rule
  /** Whether the file belongs to the session. The check then does not ask. */
  own?: boolean
  /** Whether only deny rules affect the check. The check then never asks. */
  onlyDenies?: boolean
  /**
   * Whether another check of the request covers this check. This check then asks only if a rule that is narrower than
   * `*` asks.
   */
  covered?: boolean
  /** Whether the sandbox limits the effect. The check then asks only if a rule that is narrower than `*` asks. */
  confined?: boolean
  /** Why the check asks, if it is not obvious from the rules. */
  reason?: string
  /** Why the file is protected. A protected file requires permission even inside the worktree. */
  protection?: string
  /** The path with symbolic links resolved. */
  resolved?: string
  /** The patterns that "always" remembers. Undefined if "always" is not available. */
  remember?: readonly string[]
  /** Why "always" is not available. */
  onlyOnce?: string
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

/** One command in a command text, and its verdict. */
export interface JudgedCommand extends Pick<JudgedCheck, "pattern" | "action" | "rule" | "reason"> {
  argv: string[]
}

/** The verdict on a request: deny if any check denies, otherwise ask if any check asks, otherwise allow. */
export interface Verdict {
  action: Action
  checks: JudgedCheck[]
  /** All commands in the text. Only for `bash` and `sandbox_escape`. */
  commands?: JudgedCommand[]
}
