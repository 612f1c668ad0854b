import * as z from "zod"
import { CallReference } from "./permission.ts"

/** A question from the model to the user. The user can always answer in their own words. */
export const Question = z.lazy(() =>
  z.object({
    question: z.string().min(1).describe("Complete question"),
    header: z.string().max(60).optional().describe("Subject in 1 to 3 words"),
    options: z
      .array(
        z.object({
          label: z.string().min(1).describe("Answer in 1 to 5 words"),
          description: z.string().optional().describe("What the answer means"),
        }),
      )
      .max(20)
      .optional()
      .describe("Answers to choose from; the user can always write a different answer"),
    multiple: z.boolean().optional().describe("Allow several answers"),
  }),
)
export type Question = z.infer<typeof Question>

/** Text that the user reads before answering, such as a plan. `path` is the file with the full text. */
export const QuestionDocument = z.lazy(() =>
  z.object({ title: z.string(), path: z.string(), text: z.string() }),
)
export type QuestionDocument = z.infer<typeof QuestionDocument>

/** Questions that wait for the user. They are answered together. */
export const QuestionRequest = z.lazy(() =>
  z.object({
    id: z.string(),
    sessionID: z.string(),
    questions: z.array(Question),
    document: QuestionDocument.optional(),
    tool: CallReference.optional(),
  }),
)
export type QuestionRequest = z.infer<typeof QuestionRequest>

/**
 * For each question, the chosen labels and the answer in the user's own words, if any. An empty list means that the
 * question was not answered.
 */
export const QuestionAnswers = z.lazy(() => z.array(z.array(z.string())))
export type QuestionAnswers = z.infer<typeof QuestionAnswers>
