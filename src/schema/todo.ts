import * as z from "zod"

/** One entry of the session's to-do list. */
export const Todo = z.lazy(() =>
  z.object({
    content: z.string().min(1).describe("What is to be done, in one line"),
    status: z.enum(["pending", "in_progress", "completed", "cancelled"]).describe("Where it stands"),
    priority: z.enum(["high", "medium", "low"]).default("medium").describe("How much it matters"),
  }),
)
export type Todo = z.infer<typeof Todo>
