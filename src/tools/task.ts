import * as z from "zod"
import type { SubagentProgress, SubagentResult, ToolContext } from "../tool/context.ts"
import { define, type Info, type ToolResult } from "../tool/tool.ts"
import { abortedError } from "../util/abort.ts"
import { TackleError } from "../util/errors.ts"
import { readText } from "../util/file-system.ts"
import { formatSeconds } from "../util/time.ts"
import { counted } from "../util/words.ts"

const parameters = z.lazy(() =>
  z.object({
    description: z.string().min(1).describe("The task in 3 to 5 words, for the user"),
    prompt: z.string().min(1).describe("Complete instructions for the subagent"),
    subagent_type: z.string().min(1).describe("Name of the subagent"),
    task_id: z.string().min(1).optional().describe("Id of a task in this session to continue"),
  }),
)

/** A subagent that the tool's description lists. */
export interface SubagentChoice {
  name: string
  description: string
}

/** Access to the host's subagents. */
export interface TaskOptions {
  /** Returns the subagents that the agent may start. */
  subagents(agent: string): readonly SubagentChoice[]
}

/**
 * Thrown if a subagent fails or is interrupted. The error message contains the id of the subagent's session, the cause,
 * and the subagent's last message.
 */
class TaskFailedError extends TackleError {
  readonly sessionID: string
  constructor(agent: string, { sessionID, status, cause, text }: SubagentResult) {
    const what = status === "interrupted" ? "was interrupted" : `failed: ${cause ?? "no reason given"}`
    const words = text === "" ? "" : `\nIts last message:\n${text}`
    super(`The subagent ${agent} ${what}\ntask_id: ${sessionID} (pass it to continue)${words}`, {
      code: "task.failed",
      recoverable: true,
    })
    this.sessionID = sessionID
  }
}

/**
 * Creates the task tool, which runs a subagent and returns its last message. If the subagent reaches a limit or
 * its answer ended early, the call still succeeds.
 */
export function createTaskTool({ subagents }: TaskOptions): Info<typeof parameters> {
  return define("task", async (init) => ({
    description: describe(subagents(init?.agent?.name ?? "")),
    parameters,
    access: "execute",
    asksFirst: true,
    async execute(args, ctx) {
      const { description, prompt, subagent_type: agent, task_id: sessionID } = args
      const { spawn } = ctx
      if (!spawn) throw new NoSubagentsError()
      await ctx.ask({
        permission: "task",
        patterns: [agent],
        always: [agent],
        metadata: { description, subagent: agent, prompt },
      })
      const result = await spawn({
        agent,
        prompt,
        description,
        sessionID,
        signal: ctx.abort,
        onProgress: (progress) => report(progress, { description, agent }, ctx),
      })
      if (ctx.abort.aborted) throw abortedError(ctx.abort)
      if (result.status === "failed" || result.status === "interrupted")
        throw new TaskFailedError(agent, result)
      return resultOf(result, { description, agent })
    },
  }))
}

class NoSubagentsError extends TackleError {
  constructor() {
    super("Subagents are not available here, because they require a session. Do the work yourself.", {
      code: "task.unavailable",
      recoverable: true,
    })
  }
}

function describe(subagents: readonly SubagentChoice[]): string {
  const list = subagents.map(({ name, description }) => `- ${name}: ${description}`)
  const text = readText(new URL("./task.md", import.meta.url)).trimEnd()
  return list.length === 0
    ? `${text}\nNo subagents are available.`
    : `${text}\nSubagents:\n${list.join("\n")}`
}

interface Task {
  description: string
  agent: string
}

function report(progress: SubagentProgress, { description, agent }: Task, ctx: ToolContext): void {
  const { sessionID, count, calls, usage } = progress
  // Not awaited, because the engine merges progress reports, and reports their errors with the result of the call.
  void ctx.metadata({ title: description, metadata: { sessionID, agent, count, calls, usage } })
}

function resultOf(result: SubagentResult, { description, agent }: Task): ToolResult {
  const { sessionID, status, text, cause, count, usage, durationMs } = result
  const head = `task_id: ${sessionID} (${agent}, ${counted(count, "call")}, ${formatSeconds(durationMs)})`
  const note =
    status === "limit" || status === "incomplete"
      ? `[The subagent did not finish. ${cause ?? "A limit was reached."} The partial result follows; pass the task_id to continue.]\n`
      : ""
  return {
    title: description,
    output: `${head}\n${note}\n${text === "" ? "(no report)" : text}`,
    metadata: { sessionID, agent, count, status, usage },
  }
}
