import { setTimeout as sleep } from "node:timers/promises"
import { type CallToolResult, type Client, specTypeSchemas } from "@modelcontextprotocol/client"
import * as z from "zod"
import type { McpCall } from "./pending-calls.ts"

/** Time in milliseconds between two requests for the state of a task, if the server proposes none. */
const defaultPollMs = 1_000

const Task = z.object({
  taskId: z.string(),
  status: z.enum(["working", "input_required", "completed", "failed", "cancelled"]),
  statusMessage: z.string().optional(),
  pollInterval: z.number().optional(),
})

/**
 * Runs a tool that its server offers only as a task. Reports each new status message as progress, and calls `restart`
 * after each answer from the server. `timeout` is the limit of one request in milliseconds. If the signal aborts,
 * cancels the task and throws the signal's reason. Throws the errors of the requests.
 */
export async function callAsTask(
  client: Client,
  { name, args, onProgress }: McpCall,
  { restart, signal, timeout }: { restart(): void; signal: AbortSignal; timeout: number },
): Promise<CallToolResult> {
  const options = { signal, timeout }
  const params = { name, arguments: args, task: {} }
  const created = await client.request({ method: "tools/call", params }, z.object({ task: Task }), options)
  const { taskId } = created.task
  let state = created.task
  let reports = 0
  try {
    while (state.status === "working") {
      await sleep(state.pollInterval ?? defaultPollMs, undefined, { signal })
      const { statusMessage } = state
      state = await client.request({ method: "tasks/get", params: { taskId } }, Task, options)
      restart()
      if (state.statusMessage !== undefined && state.statusMessage !== statusMessage) {
        reports += 1
        onProgress({ progress: reports, message: state.statusMessage })
      }
    }
    // This request also waits for a task that needs input, and carries the server's questions.
    return await client.request(
      { method: "tasks/result", params: { taskId } },
      specTypeSchemas.CallToolResult,
      options,
    )
  } catch (error) {
    if (signal.aborted)
      await client
        .request({ method: "tasks/cancel", params: { taskId } }, z.looseObject({}), { timeout: 5_000 })
        .catch(() => {})
    throw error
  }
}
