import * as z from "zod"
import { ModelRef } from "./message.ts"

/** A conversation with its place on disk. Times are milliseconds since the epoch. */
export const Session = z.object({
  id: z.string(),
  title: z.string(),
  /** Where relative paths of the tools start. Absolute. */
  directory: z.string(),
  /** The project's root: the top of the git work tree, else the directory itself. Absolute. */
  worktree: z.string(),
  agent: z.string(),
  model: ModelRef.optional(),
  /** The session whose `task` call started this one. */
  parentID: z.string().optional(),
  /** It is a recorded run that was run again: nobody talks there, and it is not what the person did last. */
  replayed: z.literal(true).optional(),
  /** Messages whose turns were undone since the last prompt, the last one undone at the end. */
  undone: z.array(z.string()).optional(),
  /** Set while the prompt of a command is under way that has an agent or model of its own: what is again after it. */
  lent: z
    .object({
      /** The command's agent, and the one before. */
      agent: z.object({ to: z.string(), from: z.string() }).optional(),
      /** The model before; null: there was none. Absent: the prompt's stays. */
      model: ModelRef.nullable().optional(),
    })
    .optional(),
  time: z.object({ created: z.number(), updated: z.number() }),
})
export type Session = z.infer<typeof Session>
