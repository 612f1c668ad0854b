import type { Question, QuestionDocument } from "../../schema/question.ts"
import type { ToolContext } from "../../tool/context.ts"
import type { ToolResult } from "../../tool/tool.ts"
import { TackleError } from "../../util/errors.ts"

/** What the person made of the question. `said`: their own words; absent where they took an option or nothing. */
export interface ModeAnswer {
  agreed: boolean
  said?: string
  /** The session's plan file. */
  file: string
}

/**
 * Puts a yes or no to the person; only the first option is a yes, their own words and a dismissal are not. `show` makes
 * what they read before they answer from the path of the plan. Throws where there is no plan mode or nobody to ask.
 */
export async function askForMode(
  ctx: ToolContext,
  question: Question,
  show?: (file: string) => Promise<QuestionDocument>,
): Promise<ModeAnswer> {
  if (!ctx.plan || !ctx.question) throw new NoPlanModeError()
  const { file } = ctx.plan
  const answers = await ctx.question([question], await show?.(file))
  const [yes, ...others] = (question.options ?? []).map(({ label }) => label)
  const answer = answers?.[0]?.[0]
  if (answer === undefined || others.includes(answer)) return { agreed: false, file }
  return answer === yes ? { agreed: true, file } : { agreed: false, said: answer, file }
}

/** The result where the mode stays as it is. */
export function modeRefused(said: string | undefined, next: string): ToolResult {
  return {
    title: "not agreed",
    output: said === undefined ? next : `${next}\nThe user said: ${said}`,
    metadata: { agreed: false, ...(said === undefined ? {} : { said }) },
  }
}

class NoPlanModeError extends TackleError {
  constructor() {
    super(
      "Plan mode is not available here: it requires a session and a user who can answer. Continue without it.",
      {
        code: "plan.unavailable",
        recoverable: true,
      },
    )
  }
}
