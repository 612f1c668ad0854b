import { expect, test } from "vitest"
import { fakeContext } from "../../src/testing/context.ts"
import { todoreadTool, todowriteTool } from "../../src/tools/todo.ts"

const write = async (ctx: ReturnType<typeof fakeContext>, todos: unknown) => {
  const tool = await todowriteTool.init()
  return tool.execute(tool.parameters.parse({ todos }), ctx)
}
const read = async (ctx: ReturnType<typeof fakeContext>) => (await todoreadTool.init()).execute({}, ctx)

test("replaces the whole list and shows it", async () => {
  const ctx = fakeContext({ directory: "/" })
  await write(ctx, [{ content: "old", status: "pending" }])
  const result = await write(ctx, [
    { content: "build\nit", status: "completed", priority: "high" },
    { content: "test it", status: "in_progress" },
    { content: "ship it", status: "pending", priority: "low" },
    { content: "drop it", status: "cancelled", priority: "medium" },
  ])
  expect(result.title).toBe("2 open to-dos")
  expect(result.output).toBe(
    "[completed] build it (high)\n[in_progress] test it\n[pending] ship it (low)\n[cancelled] drop it",
  )
  expect(result.metadata?.todos).toHaveLength(4)
  expect(await read(ctx)).toEqual(result)
  expect(ctx.asked).toEqual(Array(3).fill({ permission: "todo", patterns: ["*"], always: ["*"] }))
})

test("defaults to medium priority", async () => {
  const ctx = fakeContext({ directory: "/" })
  await write(ctx, [{ content: "a", status: "pending" }])
  expect(await ctx.todo?.read()).toEqual([{ content: "a", status: "pending", priority: "medium" }])
})

test("says that the list is empty", async () => {
  const ctx = fakeContext({ directory: "/" })
  expect(await read(ctx)).toMatchObject({
    title: "0 open to-dos",
    output: "The to-do list is empty.",
    metadata: { todos: [], truncated: false },
  })
  await write(ctx, [{ content: "a", status: "pending" }])
  expect((await write(ctx, [])).output).toBe("The to-do list is empty.")
})

test("rejects unknown states", async () => {
  const tool = await todowriteTool.init()
  expect(tool.parameters.safeParse({ todos: [{ content: "a", status: "later" }] }).success).toBe(false)
})

test("changes nothing if refused", async () => {
  const ctx = fakeContext({
    directory: "/",
    onAsk: () => {
      throw new Error("refused")
    },
  })
  await expect(write(ctx, [{ content: "a", status: "pending" }])).rejects.toThrow("refused")
  expect(await ctx.todo?.read()).toEqual([])
})

test("reports that it needs a session", async () => {
  const ctx = { ...fakeContext({ directory: "/" }), todo: undefined }
  await expect(write(ctx as never, [])).rejects.toMatchObject({ code: "todo.absent", recoverable: true })
})
