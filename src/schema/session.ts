import * as z from "zod"
import { ModelRef } from "./message.ts"

/**
 * A session's machine and worktree, and the data with which another machine can rebuild the worktree. Recorded when the
 * session is created, if other machines can read the contents of changed files.
 */
export const Workspace = z.object({
  /** Name of the machine. */
  host: z.string(),
  /** Absolute path of the worktree with all links resolved, which is the base of the recorded file changes. */
  root: z.string(),
  git: z
    .object({
      /** URL of the remote for HTTP or SSH, without a password. */
      remote: z.string(),
      /** Newest commit of the worktree that is on a branch of the remote. */
      commit: z.string(),
      /** Number of later commits, which the remote does not contain. */
      unpushed: z.number(),
      /** Paths of uncommitted new and changed files, relative to `root`. At most 100. */
      uncommitted: z.array(z.string()),
      /** Number of uncommitted files that the list omits. */
      more: z.number().optional(),
    })
    .optional(),
})
export type Workspace = z.infer<typeof Workspace>

/** A conversation and its directory. Times are milliseconds since the epoch. */
export const Session = z.object({
  id: z.string(),
  title: z.string(),
  /** Absolute path that is the base of relative paths in tool calls. */
  directory: z.string(),
  /** Absolute path of the git worktree's root, or of the directory itself if it is not in a git worktree. */
  worktree: z.string(),
  workspace: Workspace.optional(),
  agent: z.string(),
  model: ModelRef.optional(),
  /** Id of the session whose `task` call started this session. */
  parentID: z.string().optional(),
  /** Id of the session that this session was copied from. */
  forkedFrom: z.string().optional(),
  /** Name of the tenant whose limits apply. Subagents and forks inherit it. */
  tenant: z
    .string()
    .regex(/^[\w.-]{1,64}$/)
    .optional(),
  /** Whether this session is the replay of a recorded run. `--continue` ignores such sessions. */
  replayed: z.literal(true).optional(),
  /** Ids of the messages whose turns were undone since the last prompt, in the order of the undo operations. */
  undone: z.array(z.string()).optional(),
  /**
   * An undo or redo that has begun to change files. If its process ends first, the next process that uses the session
   * finishes it.
   */
  restoring: z
    .object({
      direction: z.enum(["undo", "redo"]),
      /** Ids of the messages that started the turns, newest first. */
      messages: z.array(z.string()),
      /** Whether to restore the other files if a file cannot be restored. */
      others: z.literal(true).optional(),
    })
    .optional(),
  /**
   * Values to restore after a command that uses a different agent or model. Set only while such a command is running.
   */
  lent: z
    .object({
      /** Agent of the command (`to`) and the previous agent (`from`). */
      agent: z.object({ to: z.string(), from: z.string() }).optional(),
      /** Previous model, or null if the session had none. Absent if the command does not change the model. */
      model: ModelRef.nullable().optional(),
    })
    .optional(),
  time: z.object({ created: z.number(), updated: z.number() }),
})
export type Session = z.infer<typeof Session>

/** A part of a text that contains the searched words. */
export const SessionMatch = z.object({
  /** About 160 characters in one line. An ellipsis marks a start or an end that was cut off. */
  excerpt: z.string(),
  /** Start and end of each matching word in `excerpt`, in UTF-16 code units. */
  marks: z.array(z.tuple([z.number(), z.number()])),
  /** Id of the message that contains the text, and its role. Absent if the text is the title. */
  messageID: z.string().optional(),
  role: z.enum(["user", "assistant"]).optional(),
})
export type SessionMatch = z.infer<typeof SessionMatch>

/** A session in a list. `match` is set if the list is the result of a search. */
export interface ListedSession extends Session {
  match?: SessionMatch
}
