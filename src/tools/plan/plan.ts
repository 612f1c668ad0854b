import { open } from "node:fs/promises"
import * as z from "zod"
import type { Question, QuestionDocument } from "../../schema/question.ts"
import type { ToolContext } from "../../tool/context.ts"
import { define, type ToolResult } from "../../tool/tool.ts"
import { throwIfAborted } from "../../util/abort.ts"
import { systemCode, TackleError } from "../../util/errors.ts"
import { readText } from "../../util/file-system.ts"

/** Asks the user whether to plan first. If they agree, the session continues as the plan agent. */
export const planEnterTool = define("plan_enter", {
  description: readText(new URL("./plan-enter.md", import.meta.url)),
  parameters: z.object({}),
  access: "meta",
  serial: true,
  async execute(_, ctx) {
    const { agreed, said, file } = await askForMode(ctx, {
      question: "Plan first? The project stays read-only until you approve a plan.",
      header: "Plan mode",
      options: [
        { label: "Yes, plan first", description: "switch to plan mode" },
        { label: "No, continue", description: "work without a plan" },
      ],
    })
    if (!agreed)
      return notAgreed(
        said,
        "The user does not want a plan first. Continue with the task, and do not ask again.",
      )
    return {
      title: "plan mode",
      output: "The user agreed. The session continues in plan mode.",
      metadata: { agent: "plan", file },
      handover: {
        agent: "plan",
        message: `You are now in plan mode. Gather the information that the plan needs, write the plan to ${file} (the only file you may write), then call plan_exit.`,
      },
    }
  },
})

/** Shows the user the plan. If they approve, the session continues as the build agent. */
export const planExitTool = define("plan_exit", {
  description: readText(new URL("./plan-exit.md", import.meta.url)),
  parameters: z.object({}),
  access: "meta",
  serial: true,
  async execute(_, ctx) {
    const { agreed, said, file } = await askForMode(
      ctx,
      {
        question: "Carry out this plan?",
        header: "Plan",
        options: [
          { label: "Yes, carry it out", description: "the build agent takes over" },
          { label: "No, keep planning", description: "nothing is changed" },
        ],
      },
      async (path) => ({ title: "Plan", path, text: await readPlan(path, ctx.abort) }),
    )
    if (!agreed) {
      const next =
        said === undefined ? "ask the user what is missing, or stop and wait" : "revise the plan as they ask"
      return notAgreed(said, `The user did not approve the plan. You are still in plan mode: ${next}.`)
    }
    return {
      title: "plan approved",
      output: "The user approved the plan. The session continues as the build agent.",
      metadata: { agent: "build", file },
      handover: {
        agent: "build",
        message: `The user approved the plan in ${file}, and plan mode is over: you may change the project again. Carry out the plan step by step.`,
      },
    }
  },
})

/**
 * The user's answer. `said` contains the user's own words, if they chose none of the options. `file` is the session's
 * plan file.
 */
interface ModeAnswer {
  agreed: boolean
  said?: string
  file: string
}

/**
 * Asks a yes-or-no question. Choosing the first option means yes. Any other answer, or dismissing the question, means
 * no. `show` receives the path of the plan and returns a document to show before the question. Throws `TackleError` if
 * the session has no plan mode or no user can answer.
 */
async function askForMode(
  ctx: ToolContext,
  question: Question,
  show?: (file: string) => Promise<QuestionDocument>,
): Promise<ModeAnswer> {
  if (!ctx.plan || !ctx.question)
    throw new TackleError(
      "Plan mode is not available here: it requires a session and a user who can answer, and subagents cannot use it. Continue without plan mode.",
      { code: "plan.unavailable", recoverable: true },
    )
  const { file } = ctx.plan
  const answers = await ctx.question([question], await show?.(file))
  const [yes, ...others] = (question.options ?? []).map(({ label }) => label)
  const answer = answers?.[0]?.[0]
  if (answer === undefined || others.includes(answer)) return { agreed: false, file }
  return answer === yes ? { agreed: true, file } : { agreed: false, said: answer, file }
}

function notAgreed(said: string | undefined, next: string): ToolResult {
  return {
    title: "not agreed",
    output: said === undefined ? next : `${next}\nThe user said: ${said}`,
    metadata: { agreed: false, said },
  }
}

/** Maximum number of bytes of a plan to show. */
const maxBytes = 64 * 1024

/**
 * Returns the plan for the user. Cuts a plan that is longer than {@link maxBytes}, and adds a note. Throws
 * `TackleError` if the plan is missing or empty.
 */
async function readPlan(file: string, signal: AbortSignal): Promise<string> {
  throwIfAborted(signal)
  const { bytes, size } = await readStart(file)
  const text = new TextDecoder().decode(bytes, { stream: true }).trim()
  if (text === "") throw missing(file)
  return size > bytes.length ? `${text}\n\n[${size - bytes.length} more bytes: see ${file}]` : text
}

async function readStart(file: string): Promise<{ bytes: Uint8Array; size: number }> {
  try {
    await using handle = await open(file)
    const { size } = await handle.stat()
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(Math.min(size, maxBytes)), 0)
    return { bytes: buffer.subarray(0, bytesRead), size }
  } catch (error) {
    if (systemCode(error) === "ENOENT" || systemCode(error) === "ENOTDIR") throw missing(file)
    throw error
  }
}

function missing(file: string): TackleError {
  return new TackleError(
    `No plan to show: ${file} is missing or empty. Write the plan there, then call plan_exit.`,
    { code: "plan.missing", recoverable: true },
  )
}
