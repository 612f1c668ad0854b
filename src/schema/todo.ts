import * as z from "zod"

/** One entry in the session's to-do list. */
export const Todo = z.lazy(() =>
  z.object({
    content: z.string().min(1).describe("What to do, in one line"),
    status: z.enum(["pending", "in_progress", "completed", "cancelled"]).describe("State"),
    priority: z.enum(["high", "medium", "low"]).default("medium").describe("Priority"),
  }),
)
export type Todo = z.infer<typeof Todo>
