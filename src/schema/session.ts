import * as z from "zod"
import { ModelRef } from "./message.ts"

/** A conversation and its directory. Times are milliseconds since the epoch. */
export const Session = z.object({
  id: z.string(),
  title: z.string(),
  /** Base of relative paths in tool calls. Absolute. */
  directory: z.string(),
  /** The root of the git worktree, or the directory itself without git. Absolute. */
  worktree: z.string(),
  agent: z.string(),
  model: ModelRef.optional(),
  /** The session whose `task` call started this one. */
  parentID: z.string().optional(),
  /** True for the replay of a recorded run. `--continue` ignores it. */
  replayed: z.literal(true).optional(),
  /** Messages whose turns were undone since the last prompt, in the order of undoing. */
  undone: z.array(z.string()).optional(),
  /** Set while a command with its own agent or model runs: the values to restore afterwards. */
  lent: z
    .object({
      /** The agent of the command, and the previous agent. */
      agent: z.object({ to: z.string(), from: z.string() }).optional(),
      /** The previous model; null: none. Absent: the model does not change. */
      model: ModelRef.nullable().optional(),
    })
    .optional(),
  time: z.object({ created: z.number(), updated: z.number() }),
})
export type Session = z.infer<typeof Session>
