import * as z from "zod"
import { Message } from "../../schema/message.ts"
import { Part } from "../../schema/part.ts"
import { Session, SessionMatch } from "../../schema/session.ts"
import { Todo } from "../../schema/todo.ts"
import { Archive } from "../../session/archive.ts"
import { Usage } from "./event-schemas.ts"
import { described, isChange, name, noChange } from "./named.ts"

/**
 * A session's state: `waiting` while a request waits for the user, `running` during a run or while an input can be
 * delivered, and otherwise `idle`.
 */
export const Status = z.enum(["idle", "running", "waiting"])

const MessageView = z.object({ message: Message, parts: z.array(Part) })

const MatchView = described(SessionMatch, {
  excerpt: "Excerpt of about 160 characters, on one line",
  marks: "Start and end of each word that matches, as `[start, end]` in UTF-16 code units of `excerpt`",
  messageID: "Id of the message that contains the text. Absent if the text is the title",
})

const SessionView = described(Session, {
  directory: "Absolute path of the session's working directory",
  worktree: "Absolute path of the root of the git worktree. Outside git worktrees, the same as `directory`",
  workspace: "Machine of the session, and how to rebuild its worktree on another machine",
  agent: "Agent for the next prompt",
  model: "Model for the next prompt. Absent if the agent or the config chooses it",
  parentID: "Session whose `task` call started this session",
  tenant: "Tenant whose limits apply, from the token that created the session",
  forkedFrom: "Id of the session that this session was copied from",
  replayed: "True for the replay of a recorded run",
  undone:
    "Ids of the messages whose turns were undone since the last prompt, in the order of the undo operations",
  restoring: "An undo or redo that has begun to change files. Finished at the next use if its process ends",
  lent: "Values to restore after a command with its own agent or model. Set only while the command runs",
  time: "In milliseconds since the epoch",
}).extend({
  seq: z
    .number()
    .describe(
      "Number of the latest change. To follow the session from this state, request the events after this number",
    ),
  status: Status,
  match: MatchView.optional().describe("Set by a search: an excerpt of the first text that matches"),
})
/** A stored session with its sequence number and status. */
export type SessionView = z.infer<typeof SessionView>

const RestoredFile = z.object({ path: z.string(), kind: z.enum(["restored", "removed"]) })

const UndoResult = z.object({
  messageID: z.string().describe("The message that started the turn"),
  prompt: z.string(),
  files: z.array(RestoredFile),
  refused: z
    .array(
      z.object({
        path: z.string(),
        why: z.enum(["changed", "mixed", "too-large", "unstored", "not-kept", "unreadable", "skipped"]),
      }),
    )
    .describe("Files that the undo or redo left as they were, with the reason"),
  unseen: z.array(z.string()).describe("Messages about the turn's changes that could not be tracked"),
})

const CompactionResult = z.object({
  before: z.number().describe("Size of the history that the model receives, in characters"),
  after: z.number().describe("Size of the history after the compaction, in characters"),
  pruned: z.number().describe("Number of outputs that were replaced with references to files"),
  summarized: z.boolean().describe("True if a summary replaces messages"),
  spent: z.array(z.looseObject({})).describe("Tokens and cost for the summaries"),
})

const FileDiff = z.object({
  path: z.string(),
  kind: z.enum(["added", "changed", "deleted"]),
  diff: z
    .string()
    .optional()
    .describe("Unified diff. Absent if one of the contents is binary or no longer available"),
})

const UsageStats = z.object({
  sessions: z.number().describe("Includes the sessions of subagents"),
  prompts: z.number().describe("Prompts by the user"),
  usage: Usage,
  models: z.array(z.object({ model: z.string(), steps: z.number(), usage: Usage })),
  tools: z.array(
    z.object({
      tool: z.string(),
      calls: z.number(),
      failed: z.number().describe("Includes refused calls"),
      durationMs: z.number().describe("Excludes the time spent waiting for the user"),
    }),
  ),
})

/** Schemas for sessions and their history. */
export const sessionResponses = {
  session: name("Session", SessionView),
  message: name("MessageWithParts", MessageView),
  undo: name("UndoResult", UndoResult),
  compaction: name("CompactionResult", CompactionResult),
  archive: name("Archive", Archive),
  diff: name("FileDiff", FileDiff),
  stats: name("UsageStats", UsageStats),
  todo: name("Todo", Todo),
}

/** Bodies of requests that create or change sessions. Unknown fields are errors. */
export const sessionBodies = {
  create: z
    .strictObject({
      directory: z.string().openapi({ description: "Absolute path of the project's directory" }),
      agent: z.string().optional(),
      model: z.string().optional().openapi({ description: "As `provider/model`" }),
      title: z.string().max(1_000).optional(),
    })
    .openapi("NewSession"),
  update: z
    .strictObject({
      title: z.string().max(1_000).optional().openapi({
        description: "Title of the session. If it is empty, the next prompt sets it",
      }),
      agent: z.string().optional(),
      model: z.string().optional().openapi({ description: "As `provider/model`" }),
    })
    .refine(isChange, noChange)
    .openapi("SessionChange"),
  fork: z
    .strictObject({
      at: z.string().optional().openapi({
        description:
          "Id of a message. The copy ends after the turn that contains this message. A turn is a user message and the complete response to it",
      }),
    })
    .openapi("Fork"),
  undo: z
    .strictObject({
      others: z.boolean().optional().openapi({
        description: "Whether to restore the files that can be restored, and leave the others unchanged",
      }),
      skip: z.boolean().optional().openapi({
        description:
          "Whether to leave all of the turn's files unchanged, but count the turn as undone or redone",
      }),
      through: z.string().optional().openapi({
        description:
          "Id of a user message. Its turn and all later turns are undone as one operation. Not valid for a redo, or with `others` or `skip`",
      }),
    })
    .openapi("Undo"),
  import: z
    .strictObject({
      directory: z.string().openapi({ description: "Absolute path of the project's directory" }),
      archive: z.unknown().openapi({ type: "object", description: "An `Archive`" }),
      copy: z.boolean().optional().openapi({ description: "Whether to assign new ids" }),
    })
    .openapi("Import"),
}
