import * as z from "zod"
import { Question, type QuestionAnswers } from "../schema/question.ts"
import { define } from "../tool/tool.ts"
import { TackleError } from "../util/errors.ts"
import { readText } from "../util/file-system.ts"

const parameters = z.lazy(() =>
  z.object({
    questions: z
      .array(Question)
      .min(1)
      .max(10)
      .describe("The user sees one question at a time; the result contains all answers"),
  }),
)

/** Asks the user questions. If the user dismisses them, the call still succeeds. */
export const questionTool = define("question", {
  description: readText(new URL("./question.md", import.meta.url)),
  parameters,
  access: "meta",
  async execute({ questions }, ctx) {
    if (!ctx.question)
      throw new TackleError(
        "No user can answer here. Choose what fits the task best, and say what you chose.",
        {
          code: "question.unavailable",
          recoverable: true,
        },
      )
    const answers = await ctx.question(questions)
    if (!answers) {
      return {
        title: "dismissed",
        output:
          `The user dismissed the ${questions.length === 1 ? "question. Do not ask it" : "questions. Do not ask them"} again. ` +
          "Choose what fits the task best and say what you chose, or stop if you cannot choose.",
        metadata: { questions, dismissed: true },
      }
    }
    const count = answers.filter((answer) => answer.length > 0).length
    return {
      title: `${count} of ${questions.length} answered`,
      output: describe(questions, answers),
      metadata: { questions, answers },
    }
  },
})

function describe(questions: readonly Question[], answers: QuestionAnswers): string {
  return questions
    .map(({ question }, index) => {
      const answer = answers[index] ?? []
      return `${question}\n${answer.length === 0 ? "(no answer)" : answer.map((text) => `→ ${text}`).join("\n")}`
    })
    .join("\n\n")
}
