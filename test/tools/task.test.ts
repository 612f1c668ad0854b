import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect, onTestFinished, test } from "vitest"
import { fakeContext } from "../../src/testing/context.ts"
import type { Spawn, SpawnRequest, SubagentResult } from "../../src/tool/context.ts"
import { runTool } from "../../src/tool/run.ts"
import { createTaskTool } from "../../src/tools/task.ts"

const args = { description: "find it", prompt: "Find it.", subagent_type: "explore" }
const ended: SubagentResult = {
  sessionID: "ses_child",
  status: "completed",
  text: "Found.",
  count: 2,
  usage: { input: 100, output: 10, reasoning: 0, cacheRead: 0, cacheWrite: 0, cost: 0.5 },
  durationMs: 1500,
}

async function call(spawn: Spawn | undefined, more: { abort?: AbortSignal; onAsk?: () => void } = {}) {
  const directory = mkdtempSync(join(tmpdir(), "task-"))
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }))
  const ctx = fakeContext({ directory, ...(spawn ? { spawn } : {}), ...more })
  const tool = createTaskTool({ subagents: () => [{ name: "explore", description: "Looks." }] })
  const definition = await tool.init({ agent: { name: "build", mode: "primary", permission: [] } })
  return { ctx, definition, result: runTool({ id: "task", definition }, args, ctx) }
}

test("lists the available subagents in the description", async () => {
  const { definition, result } = await call(async () => ended)
  expect(definition.description).toMatch(/\nSubagents:\n- explore: Looks\.$/)
  await result
})

test("asks before it starts the subagent, shows its calls and returns its last message", async () => {
  const started: SpawnRequest[] = []
  const { ctx, result } = await call(async (request) => {
    started.push(request)
    request.onProgress({
      sessionID: "ses_child",
      count: 1,
      calls: [{ tool: "grep", title: "it", status: "running" }],
      usage: { ...ended.usage, cost: 0.25 },
    })
    return ended
  })
  const { output, title, metadata } = await result
  expect(ctx.asked).toMatchObject([{ permission: "task", patterns: ["explore"] }])
  expect(started).toMatchObject([{ agent: "explore", prompt: "Find it.", description: "find it" }])
  expect(ctx.reported).toMatchObject([
    {
      title: "find it",
      metadata: { sessionID: "ses_child", calls: [{ tool: "grep" }], usage: { cost: 0.25 } },
    },
  ])
  expect(title).toBe("find it")
  expect(output).toBe("task_id: ses_child (explore, 2 calls, 1.5 s)\n\nFound.")
  expect(metadata).toMatchObject({
    ...{ sessionID: "ses_child", agent: "explore", count: 2, status: "completed" },
    usage: { cost: 0.5 },
  })
})

test("starts nothing if refused", async () => {
  const onAsk = () => {
    throw new Error("refused")
  }
  let started = false
  const spawn: Spawn = async () => {
    started = true
    return ended
  }
  await expect((await call(spawn, { onAsk })).result).rejects.toThrow("refused")
  expect(started).toBe(false)
})

test("returns a result with a note at a limit", async () => {
  const { result } = await call(async () => ({ ...ended, status: "limit", cause: "Its time was over." }))
  expect((await result).output).toMatch(
    /\[The subagent did not finish\. Its time was over\.[\s\S]*\n\nFound\.$/,
  )
})

test.each<[Partial<SubagentResult>, RegExp]>([
  [{ status: "failed", cause: "no key", text: "" }, /explore failed: no key\ntask_id: ses_child[^\n]*$/],
  [{ status: "interrupted" }, /explore was interrupted\ntask_id: ses_child.*\nIts last message:\nFound\.$/],
])("%o is an error with the id to continue with", async (end, expected) => {
  const { result } = await call(async () => ({ ...ended, ...end }))
  await expect(result).rejects.toThrow(expected)
})

test("throws after an abort, whatever the subagent's result", async () => {
  const { result } = await call(async () => ({ ...ended, status: "interrupted" }), {
    abort: AbortSignal.abort(),
  })
  await expect(result).rejects.toMatchObject({ code: "aborted" })
})

test("reports that it needs a session", async () => {
  await expect((await call(undefined)).result).rejects.toMatchObject({ code: "task.unavailable" })
})
