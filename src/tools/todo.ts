import * as z from "zod"
import { Todo } from "../schema/todo.ts"
import type { TodoCapability, ToolContext } from "../tool/context.ts"
import { define } from "../tool/tool.ts"
import { TackleError } from "../util/errors.ts"
import { readText } from "../util/file-system.ts"
import { counted } from "../util/words.ts"

/** Replaces the session's to-do list. */
export const todowriteTool = define("todowrite", {
  description: readText(new URL("./todowrite.md", import.meta.url)),
  parameters: z.lazy(() => z.object({ todos: z.array(Todo).describe("The whole list, in order") })),
  access: "meta",
  async execute({ todos }, ctx) {
    const list = await openList(ctx)
    await list.write(todos)
    return result(todos)
  },
})

/** Returns the session's to-do list. */
export const todoreadTool = define("todoread", {
  description: readText(new URL("./todoread.md", import.meta.url)),
  parameters: z.object({}),
  access: "meta",
  polls: () => true,
  async execute(_, ctx) {
    const list = await openList(ctx)
    return result(await list.read())
  },
})

async function openList(ctx: ToolContext): Promise<TodoCapability> {
  if (!ctx.todo) {
    throw new TackleError(
      "The to-do list is not available here, because it requires a session. Continue without the list.",
      {
        code: "todo.absent",
        recoverable: true,
      },
    )
  }
  await ctx.ask({ permission: "todo", patterns: ["*"], always: ["*"] })
  return ctx.todo
}

function result(todos: readonly Todo[]) {
  const open = todos.filter((todo) => todo.status === "pending" || todo.status === "in_progress").length
  return {
    title: counted(open, "open to-do"),
    output: todos.length === 0 ? "The to-do list is empty." : todos.map(line).join("\n"),
    metadata: { todos },
  }
}

function line(todo: Todo): string {
  const text = todo.content.trim().replace(/\s+/g, " ")
  return `[${todo.status}] ${text}${todo.priority === "medium" ? "" : ` (${todo.priority})`}`
}
